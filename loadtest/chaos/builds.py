"""An older build of ringcron, out of the history of this checkout, to run beside ours.

Invariant: the older one is a commit's own files in a folder of their own; it runs in our Python environment, and our
tree, which has the handlers, comes after it. Its migrations are the first ones of ours, so that a database that ours
has migrated is one that it must get along with.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.cluster.programs import CHECKOUT
from ringcron.local.errors import NotAvailable

PARTS: Final = ("core", "sql", "coordinator", "shard_worker", "api")
MIGRATIONS: Final = "sql/ringcron_sql/migrations"
LOOKED_AT: Final = 200
"""So many commits back an older build is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """`commit` abbreviated; `path` is a PYTHONPATH."""

    commit: str
    migrations: int
    path: str


def older_build(reference: str | None, into: Path) -> Build:
    """The build of that commit; without one, of the newest commit that knows fewer migrations than our tree, or, where
    none does, the newest one whose workers or kernel differ from ours. Raises NotAvailable, saying why."""
    if Path(_git("rev-parse", "--show-toplevel").strip()).resolve() != CHECKOUT.resolve():
        raise NotAvailable("this tree has no git history of its own")
    ours = _our_migrations()
    commit = _find(ours) if reference is None else _git("rev-parse", "--verify", f"{reference}^{{commit}}").strip()
    theirs = _migrations(commit)
    if not _begins(ours, theirs):
        raise NotAvailable(f"the migrations of {commit[:9]} are not the first ones of this tree")
    with tarfile.open(fileobj=io.BytesIO(_git_bytes("archive", commit, *PARTS))) as archive:
        archive.extractall(into, filter="data")
    build = Build(
        commit=commit[:9],
        migrations=len(theirs),
        path=os.pathsep.join(map(str, [*(into / part for part in PARTS), CHECKOUT])),
    )
    _refuse_ours(build, into)
    return build


def _find(ours: Sequence[str]) -> str:
    commits = _git("log", f"--max-count={LOOKED_AT}", "--format=%H", "--", *PARTS).split()
    older = [commit for commit in commits if _begins(ours, _migrations(commit))]
    fewer = next((commit for commit in older if len(_migrations(commit)) < len(ours)), None)
    found = fewer or next((commit for commit in older if _differs(commit)), None)
    if found is None:
        raise NotAvailable("the git history here has no older build whose migrations are the first ones of this tree")
    return found


def _begins(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return bool(theirs) and list(theirs) == list(ours[: len(theirs)])


def _differs(commit: str) -> bool:
    command = ["git", "-C", str(CHECKOUT), "diff", "--quiet", commit, "--", "core", "shard_worker"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 1


def _migrations(commit: str) -> list[str]:
    """Name and contents (their hash) of each, in order."""
    lines = _git("ls-tree", "-r", commit, "--", MIGRATIONS).splitlines()
    entries = [line.split(maxsplit=3) for line in lines]
    return [f"{Path(name).name} {digest}" for _, _, digest, name in sorted(entries, key=lambda entry: entry[3])]


def _our_migrations() -> list[str]:
    files = sorted((CHECKOUT / MIGRATIONS).glob("*.sql"))
    digests = _git("hash-object", *map(str, files)).split()
    return [f"{file.name} {digest}" for file, digest in zip(files, digests, strict=True)]


def _refuse_ours(build: Build, folder: Path) -> None:
    """A run of our own code twice would prove nothing."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import ringcron; print(ringcron.__file__)"],
        env={**os.environ, "PYTHONPATH": build.path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if not done.stdout.startswith(str(folder)):
        raise NotAvailable(f"the build of {build.commit} does not start here: {done.stdout or done.stderr}".strip())


def _git(*arguments: str) -> str:
    return _git_bytes(*arguments).decode()


def _git_bytes(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(CHECKOUT), *arguments], check=False, capture_output=True)
    except OSError as error:
        raise NotAvailable(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        raise NotAvailable(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
