"""structlog without rich, for every program that `ringcron` starts.

structlog imports rich where it is installed, for tracebacks that print every local variable: ringcron asks for plain
ones (ringcron.logs), and each worker would carry 80 modules that nobody calls: 4 MB, a seventh of the CPU of its start.
Invariant: this is imported before anything that imports structlog; rich stays importable for everybody else.
"""

from __future__ import annotations

import sys

if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # the import system's way to say that there is none
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]
