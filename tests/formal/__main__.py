"""python -m tests.formal: have spin look at every state of the models.

    --required    fail where spin or a C compiler cannot be had, instead of saying so and passing

Each model must hold in every state and in every fair history; and each guard that is taken out of it must be missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ringcron.local.cache import cache_folder, filled, unpack_debs
from ringcron.local.errors import NotAvailable

HERE: Final = Path(__file__).parent
SEARCH_SECONDS: Final = 300
DEPTH: Final = 400_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One search. `define`: a macro for the model; `ltl`: whether histories are searched, else states; `finds`: what
    must be found, as spin words it; None: nothing must."""

    model: str
    define: str = ""
    ltl: bool = False
    finds: str | None = None

    def __str__(self) -> str:
        what = "every fair history" if self.ltl else "every state"
        return f"{self.model}{f' -D{self.define}' if self.define else ''}, {what}"


_TWO_HOLDERS: Final = r"assertion violated .*holds\[0\]\)&&holds\[2\]"
CHECKS: Final = (
    Check(model="handover", define="LIVENESS", ltl=True),
    Check(model="handover"),
    Check(model="lease"),
    Check(model="lease", ltl=True),
    Check(model="lease", define="NO_FENCE", finds=r"assertion violated .*completions\["),
    Check(model="handover", define="NO_ACK", finds=_TWO_HOLDERS),
    Check(model="handover", define="EARLY", finds=_TWO_HOLDERS),
    Check(model="handover", define="NO_CHECK", finds=_TWO_HOLDERS),
    Check(model="handover", define="NO_PROOF", finds=_TWO_HOLDERS),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """spin and a C compiler."""

    spin: str
    compiler: str


def find_tools() -> Tools:
    """RINGCRON_SPIN, spin on PATH, or Debian's package unpacked into our cache; cc or gcc. Raises NotAvailable."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise NotAvailable("there is no C compiler: install gcc")
    spin = os.environ.get("RINGCRON_SPIN") or shutil.which("spin")
    if spin is None:
        folder = filled(cache_folder() / "spin", lambda scratch: unpack_debs(["spin"], scratch))
        spin = str(folder / "usr/bin/spin")
    return Tools(spin=spin, compiler=compiler)


def search(check: Check, tools: Tools) -> str | None:
    """Why a check fails; None where it passes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(HERE / f"{check.model}.pml", folder)
        defines = [f"-D{check.define}"] if check.define else []
        _run(folder, tools.spin, *defines, "-a", f"{check.model}.pml")
        kind = ["-DNFAIR=4"] if check.ltl else ["-DSAFETY", "-DNOCLAIM"]
        _run(folder, tools.compiler, "-O2", "-w", *kind, "-o", "pan", "pan.c")
        said = _run(folder, "./pan", "-n", f"-m{DEPTH}", *(["-a", "-f"] if check.ltl else []))
        found = re.search(r"^pan:\d+: (.*)$", said, re.MULTILINE)
        complete = re.search(r"errors: \d+", said) and "max search depth too small" not in said
        if check.finds is None:
            if found is None and complete:
                return None
            return f"{found[1] if found else said}\n{_trail(folder, tools, check, defines) if found else ''}"
        if found is None or not re.search(check.finds, found[1]):
            return f"no counter-example was found, although a guard is missing: {found[1] if found else said}"
        return None


def _trail(folder: Path, tools: Tools, check: Check, defines: list[str]) -> str:
    return _run(folder, tools.spin, *defines, "-t", "-p", "-g", f"{check.model}.pml")[-8000:]


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SEARCH_SECONDS,
        check=False,
    )
    if done.returncode != 0 and not command[0].endswith("pan"):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when every check passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.formal", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--required", action="store_true")
    options = parser.parse_args(arguments)
    try:
        tools = find_tools()
    except NotAvailable as missing:
        print(f"the formal models are NOT CHECKED here: {missing}")
        return 1 if options.required else 0
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        faults = list(pool.map(lambda check: search(check, tools), CHECKS))
    for check, fault in zip(CHECKS, faults, strict=True):
        expected = "holds" if check.finds is None else "the missing guard is missed"
        print(f"{'FAILED' if fault else 'ok'}      {check}: {fault or expected}")
    print(f"{len(CHECKS)} searches in {time.monotonic() - began:.0f} s")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
