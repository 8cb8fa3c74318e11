"""The limit as a contestant: `loadtest.limit` on ringcron's own schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from loadtest.compare.contestants import Kind, Site
from loadtest.compare.ours import build_schema, schema_edition
from loadtest.compare.programs import ProgramCrew


class Limit:
    """Bare SQL. One definition for every row: see `loadtest.limit`."""

    name: Final = "limit"
    kind: Final[Kind] = "limit"
    queries: Final = "ringcron"

    @property
    def edition(self) -> str:
        return schema_edition()

    def install(self) -> Mapping[str, str]:
        return {}

    def build(self, database_url: str) -> None:
        build_schema(database_url)

    def start(self, site: Site, *, workers: int, tasks: bool) -> ProgramCrew:
        program = [sys.executable, "-P", "-m", "loadtest.limit"]
        return ProgramCrew(program, site, workers=workers, work="tasks" if tasks else "batches")
