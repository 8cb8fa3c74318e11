"""ringcron: runs a job once, on time, on some machine of a pool whose machines may vanish without warning.

Authors of jobs need this module only:

    from ringcron import handler, RunContext, Fail
"""

from ringcron.handlers import Fail, RunContext, handler

__all__ = ["Fail", "RunContext", "__version__", "handler"]

__version__ = "0.1.0"
