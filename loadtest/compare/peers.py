"""The peers: which versions, and how each is run. How each is tuned stands at the top of its program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from loadtest.compare.contestants import CHECKOUT, Absent, Broken, Contestant, Kind, Site
from loadtest.compare.installing import node_environment, put_into, python_environment, python_versions
from loadtest.compare.programs import ProgramCrew, run_program

PROGRAMS: Final = CHECKOUT / "loadtest" / "peers"


class Peer:
    """One other scheduler, driven by a program of ours."""

    kind: Kind
    name: str
    queries: str
    pinned: Sequence[str]
    """What is installed, with versions."""

    def __init__(self) -> None:
        self._program: list[str] | None = None

    @property
    def edition(self) -> str:
        return " ".join(self.pinned)

    def build(self, database_url: str) -> None:
        run_program(self.program, Site(database_url=database_url, folder=Path.cwd()), "schema")

    def start(self, site: Site, *, workers: int, tasks: bool) -> ProgramCrew:
        del tasks
        return ProgramCrew(self.program, site, workers=workers)

    @property
    def program(self) -> Sequence[str]:
        """Its command line; known once it is installed."""
        if self._program is None:
            raise Broken(f"{self.name} has not been installed")
        return self._program


class PythonPeer(Peer):
    """From PyPI, in a virtual environment of its own."""

    kind = "python"

    def __init__(self, name: str, folder: Path, requirements: Sequence[str], versions_of: Sequence[str]) -> None:
        super().__init__()
        self.name = name
        self.queries = name.replace("-", "_")
        self._folder = folder
        self.pinned = requirements
        self._versions_of = versions_of

    def install(self) -> Mapping[str, str]:
        python = python_environment(self._folder, self.name, self.pinned)
        self._program = [str(python), "-P", "-m", f"loadtest.peers.{self.queries}_program"]
        return python_versions(python, self._versions_of)


class NodePeer(Peer):
    """From npm, on the Node of a Python wheel."""

    kind = "node"

    def __init__(self, name: str, folder: Path, version: str) -> None:
        super().__init__()
        self.name = name
        self.queries = name.replace("-", "_")
        self._folder = folder
        self.pinned = [f"{name}@{version}"]

    def install(self) -> Mapping[str, str]:
        node, folder = node_environment(self._folder, self.name, self.pinned[0])
        program = f"{self.queries}.mjs"
        put_into(folder, [PROGRAMS / "protocol.mjs", PROGRAMS / program])
        self._program = [str(node), str(folder / program)]
        package = folder / "node_modules" / self.name / "package.json"
        try:
            installed = json.loads(package.read_text(encoding="utf-8"))["version"]
        except (OSError, ValueError, KeyError) as error:
            raise Absent(f"{package} cannot be read: {error}") from error
        return {self.name: installed}


def all_peers(folder: Path) -> list[Contestant]:
    """Every peer that we know, kept in `folder`."""
    return [
        PythonPeer(
            "pgqueuer",
            folder,
            ["pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"],
            ["pgqueuer", "asyncpg", "uvloop"],
        ),
        PythonPeer(
            "procrastinate", folder, ["procrastinate==3.10.0", "psycopg[binary]==3.3.9"], ["procrastinate", "psycopg"]
        ),
        NodePeer("graphile-worker", folder, "0.18.0"),
        NodePeer("pg-boss", folder, "12.38.0"),
    ]
