"""The harness's own connection to the database: blocking, one statement at a time, each committed by itself.

Invariant: statements are files, ours in `loadtest/queries`, ringcron's in `ringcron_sql`. Nothing here runs within a
measured worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files
from types import TracebackType
from typing import Any, Final, Self, cast

import psycopg

import ringcron_sql
from ringcron.clock import SystemClock

_QUERIES: Final = files("loadtest") / "queries"
_READINGS: Final = 15


class Database:
    """One connection in autocommit mode. A context: `with Database(url) as database`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True, application_name="ringcron loadtest")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def run(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run the statement of that name; its rows, none where it has none. Parameters without any are not looked for:
        a `%` then means itself."""
        cursor = self._connection.execute(statement(name), parameters or None)
        return cursor.fetchall() if cursor.description is not None else []

    def value(self, name: str, **parameters: Any) -> Any:
        """The first value of the first row."""
        return self.run(name, **parameters)[0][0]

    def copy(self, name: str, chunks: Iterable[str]) -> None:
        """Run a COPY … FROM STDIN in text format, fed with `chunks` of whole lines."""
        with self._connection.cursor() as cursor, cursor.copy(statement(name)) as copy:
            for chunk in chunks:
                copy.write(chunk)

    def now(self) -> datetime:
        """The database's clock."""
        return cast(datetime, self.value("read_clock"))

    def clock_offset(self) -> float:
        """What to add to this machine's elapsed clock to get the database's, in Unix seconds.

        From the quickest of a few readings: off by half of its round trip at most.
        """
        clock = SystemClock()
        best: tuple[float, float] | None = None
        for _ in range(_READINGS):
            sent = clock.elapsed()
            now = self.now().timestamp()
            took = clock.elapsed() - sent
            if best is None or took < best[0]:
                best = took, now - (sent + took / 2)
        assert best is not None
        return best[1]


def statement(name: str) -> bytes:
    """The text of a statement of ours, or else of ringcron's."""
    own = _QUERIES / f"{name}.sql"
    if not own.is_file():
        return ringcron_sql.query(name).encode()
    lines = own.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--")).encode()
