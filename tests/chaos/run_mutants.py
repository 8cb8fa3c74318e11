"""Does chaos notice? Each patch in `mutants/` takes one guard out of a copy of this tree; chaos on it must fail.

    .venv/bin/python -m tests.chaos.run_mutants [NAME …] [--seconds 60] [--seed 1]

Invariant: this tree is not touched. A mutant counts as caught only where an invariant is violated (exit code 1), not
where the programs do not start. Not part of CI: a mutant takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
MUTANTS: Final = Path(__file__).parent / "mutants"
COPIED: Final = ("core", "sql", "coordinator", "shard_worker", "api", "loadtest")
SOURCE_ROOTS: Final = ("", "core", "sql", "coordinator", "shard_worker", "api")

FAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "no-generation": ("N2",),
    "read-then-write-claim": ("N20", "N1"),
    "next-from-finish": ("N1",),
    "cancel-without-state": ("N21",),
    "attempt-at-failure": ("N1",),
    "renewal-ignores-owner": ("N2",),
    "reaper-trusts-one-reading": ("N6",),
    "generation-without-timeline": ("N8-async",),
    "reaper-believes-a-step": ("N15-database",),
}
"""Which nemeses bring each to light."""


class Caught(NamedTuple):
    """What became of one mutant: which invariants it violated, and how often."""

    name: str
    code: int
    violations: dict[str, int]

    @property
    def dead(self) -> bool:
        return self.code == 1 and bool(self.violations)


def main() -> int:
    """0 where every mutant was caught."""
    arguments = argparse.ArgumentParser(description="Run chaos on mutants of this tree.")
    arguments.add_argument("names", nargs="*", default=sorted(FAULTS))
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    survivors = 0
    for name in given.names:
        caught = run_mutant(name, seconds=given.seconds, seed=given.seed)
        survivors += not caught.dead
        found = ", ".join(f"{count} {invariant}" for invariant, count in caught.violations.items() if count)
        said = f"caught: {found}" if caught.dead else f"NOT CAUGHT (exit code {caught.code})"
        sys.stdout.write(f"{name:28} {said}\n")
        sys.stdout.flush()
    return 1 if survivors else 0


def run_mutant(name: str, *, seconds: float, seed: int) -> Caught:
    """Copy, patch, run."""
    with tempfile.TemporaryDirectory(prefix="ringcron-mutant-") as folder:
        tree = Path(folder) / "tree"
        for part in COPIED:
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        patch = MUTANTS / f"{name}.patch"
        subprocess.run(["git", "apply", "--whitespace=nowarn", str(patch)], cwd=tree, check=True)
        Path(folder).chmod(0o755)
        out = Path(folder) / "out"
        command = [sys.executable, "-P", "-m", "loadtest", "chaos", "--seconds", str(seconds), "--seed", str(seed)]
        for nemesis in FAULTS[name]:
            command += ["--nemesis", nemesis]
        path = os.pathsep.join(str(tree / root) for root in SOURCE_ROOTS)
        done = subprocess.run(
            [*command, "--out", str(out)],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        record = out / "record.json"
        document = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {"runs": []}
        violations = document["runs"][0]["violations"] if document["runs"] else {}
        return Caught(name, done.returncode, {key: count for key, count in violations.items() if count})


if __name__ == "__main__":
    sys.exit(main())
