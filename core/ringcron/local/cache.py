"""Debian packages unpacked into a folder of ours: no root, nothing installed, nothing of the system changed.

Invariant: a folder of the cache is either complete or absent (it is filled beside its place and renamed), so that
processes that want the same one at the same time do not meet.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ringcron.local.errors import NotAvailable


def cache_folder() -> Path:
    """Where downloaded things are kept: RINGCRON_CACHE, else the user's cache folder."""
    given = os.environ.get("RINGCRON_CACHE")
    if given:
        return Path(given).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).resolve() / "ringcron"


def filled(folder: Path, fill: Callable[[Path], None]) -> Path:
    """`folder`, made by `fill` (which is given an empty folder) where it does not exist yet."""
    try:
        if folder.exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise NotAvailable(
            f"the cache {folder.parent} cannot be used: {error.strerror}; set RINGCRON_CACHE to a folder of your own"
        ) from error
    try:
        scratch.chmod(0o755)
        fill(scratch)
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.exists():  # else somebody was faster; theirs is as good
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def unpack_debs(packages: Sequence[str], into: Path) -> None:
    """Download Debian packages and unpack them below `into`. Raises NotAvailable with apt's own words."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotAvailable(f"{', '.join(packages)}: this machine has no apt-get to fetch them with")
    with _Apt() as apt:
        apt.download(packages, into)
    for deb in sorted(into.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", deb, into], check=True)
        deb.unlink()


def missing_packages(package: str) -> list[str]:
    """`package` and those of its dependencies that are not installed. Raises NotAvailable."""
    if shutil.which("apt-get") is None:
        raise NotAvailable(f"{package}: this machine has no apt-get to fetch it with")
    with _Apt() as apt:
        return apt.would_install(package)


class _Apt:
    """apt-get on the machine's package lists, or, where those lack a package, on lists in a folder of ours."""

    def __init__(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="ringcron-apt-"))
        self._options = ["-qq", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=true"]
        self._own_lists = False

    def __enter__(self) -> _Apt:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def download(self, packages: Sequence[str], into: Path) -> None:
        self._with_lists(["download", *packages], into)

    def would_install(self, package: str) -> list[str]:
        said = self._with_lists(["install", "--simulate", "--no-install-recommends", package], self._scratch)
        return re.findall(r"^Inst (\S+)", said, re.MULTILINE)

    def _with_lists(self, arguments: Sequence[str], folder: Path) -> str:
        tried = self._apt_get(arguments, folder)
        if tried.returncode != 0 and not self._own_lists:
            self._fetch_lists()
            tried = self._apt_get(arguments, folder)
        if tried.returncode != 0:
            raise NotAvailable(f"apt-get {' '.join(arguments)}: {_last_line(tried.stdout)}")
        return tried.stdout

    def _fetch_lists(self) -> None:
        (self._scratch / "state/lists/partial").mkdir(parents=True)
        (self._scratch / "cache/archives/partial").mkdir(parents=True)
        self._options += ["-o", f"Dir::State={self._scratch / 'state'}", "-o", f"Dir::Cache={self._scratch / 'cache'}"]
        self._options += ["-o", "Dir::State::status=/var/lib/dpkg/status"]
        self._own_lists = True
        fetched = self._apt_get(["update"], self._scratch)
        if fetched.returncode != 0:
            raise NotAvailable(f"apt-get update: {_last_line(fetched.stdout)}")

    def _apt_get(self, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["apt-get", *self._options, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it failed and said nothing"
