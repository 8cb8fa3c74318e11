"""Whether the modules of handlers can be imported, found out before any server starts.

Invariant: they are imported in a process of their own, which ends at once: code of others leaves nothing here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from ringcron import readers
from ringcron.errors import ConfigError
from ringcron.handlers import load_handlers

_SAYS_FAULTS: Final = 3
"""The exit code of the process; its last line on standard error is then a JSON list."""


def check_handlers(modules: Sequence[str]) -> None:
    """Raises ConfigError where workers could not import one of these modules, or found a handler in two of them."""
    if not modules:
        return
    try:
        names = readers.several(readers.module)(",".join(modules))
    except ValueError as error:
        raise ConfigError([f"--handlers: {', '.join(map(repr, modules))} {error}"]) from None
    command = [sys.executable, "-P", "-m", __name__, *names]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == _SAYS_FAULTS:
        raise ConfigError(json.loads(done.stderr.splitlines()[-1]))


def _main(modules: Sequence[str]) -> int:
    for module in modules:
        try:
            load_handlers(module)
        except ConfigError as error:
            print("\n" + json.dumps(error.faults), file=sys.stderr, flush=True)
            return _SAYS_FAULTS
    return 0


if __name__ == "__main__":
    os._exit(_main(sys.argv[1:]))  # threads that a module has started do not hold it up
