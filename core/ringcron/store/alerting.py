"""Alerts for one job, and the audit for jobs that silently do not run: what the leader reads and writes.

Invariant: only jobs that have an alert are looked at (`job_alerts`), each when something can be wrong with it. What is
told is written down only after it was told: a breach is told at least once, and again to nobody else afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg.rows import dict_row

from ringcron.alerts import AlertKind, Judgement, Watched
from ringcron.models import JobState
from ringcron.store.calls import Calls
from ringcron.store.connection import Connection
from ringcron_sql import query

LOOKED_AT: Final = 500
"""Jobs of one look."""
SHOWN: Final = 500
AUDITED: Final = 10_000
"""Jobs of one handler that the auditor counts at most."""
AUDITED_HANDLERS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Breach:
    """A job that breaches an alert, or did when it was told last. Instants: when it began; None: it does not."""

    job_id: UUID
    late_since: datetime | None
    no_success_since: datetime | None
    told_late: datetime | None
    told_no_success: datetime | None
    key: str | None
    name: str | None
    handler: str
    state: JobState
    after_late_seconds: float | None
    if_no_success_seconds: float | None

    def untold(self) -> list[tuple[AlertKind, datetime | None]]:
        """What has not been told yet: the kind, and when it began (None: that it is over)."""
        pairs = (
            (AlertKind.LATE, self.late_since, self.told_late),
            (AlertKind.NO_SUCCESS, self.no_success_since, self.told_no_success),
        )
        return [(kind, began) for kind, began, told in pairs if began != told]


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """Enabled jobs of a handler that are long overdue and that nobody holds."""

    handler: str
    jobs: int
    oldest_seconds: float
    oldest_id: UUID


class Alerting(Calls):
    """The statements of one leader, or of one API process that shows breaches."""

    async def watched(self) -> list[Watched]:
        """The jobs to be looked at now, LOOKED_AT at most."""
        rows = await self._rows(query("look_at_alerts"), {"limit": LOOKED_AT}, prepare=True)
        return [Watched(**{**row, "state": None if row["state"] is None else JobState(row["state"])}) for row in rows]

    async def write_judgements(self, judgements: Sequence[Judgement]) -> None:
        """Write down what a look came to."""
        rows = orjson.dumps([asdict(judgement) for judgement in judgements]).decode()

        async def work(connection: Connection) -> None:
            await connection.execute(query("write_alerts"), {"rows": rows})

        await self._run(work)

    async def breaches(self) -> list[Breach]:
        """The jobs that breach an alert, or whose breach is over and has not been told; SHOWN at most."""
        rows = await self._rows(query("list_alerts"), {"limit": SHOWN}, prepare=True)
        return [Breach(**{**row, "state": JobState(row["state"])}) for row in rows]

    async def breaches_of(self, job_id: UUID) -> dict[AlertKind, datetime]:
        """What one job breaches, and since when."""
        rows = await self._rows(query("find_alert"), {"job_id": job_id}, prepare=True)
        began = (
            {AlertKind.LATE: rows[0]["late_since"], AlertKind.NO_SUCCESS: rows[0]["no_success_since"]} if rows else {}
        )
        return {kind: at for kind, at in began.items() if at is not None}

    async def told(self, job_id: UUID, kind: AlertKind, began: datetime | None) -> None:
        """Remember that this was told."""
        parameters = {"job_id": job_id, "kind": kind.value, "began": began}

        async def work(connection: Connection) -> None:
            await connection.execute(query("tell_alert"), parameters)

        await self._run(work)

    async def alert_counts(self) -> dict[AlertKind, int]:
        """How many jobs breach, by kind."""

        async def work(connection: Connection) -> tuple[int, int]:
            row = await (await connection.execute(query("count_alerts"))).fetchone()
            assert row is not None
            return row[0], row[1]

        late, no_success = await self._run(work)
        return {AlertKind.LATE: late, AlertKind.NO_SUCCESS: no_success}

    async def forgotten(self, overdue_seconds: float) -> list[Forgotten]:
        """Enabled jobs that have been due for longer than that without a live lease, the oldest first."""
        now = await self.now()
        parameters: dict[str, Any] = {
            "until_at": now - timedelta(seconds=overdue_seconds),
            "most": AUDITED,
            "limit": AUDITED_HANDLERS,
        }

        async def work(connection: Connection) -> list[dict[str, Any]]:
            async with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(query("prefer_indexes"))
                await cursor.execute(query("audit_overdue"), parameters, prepare=False)
                return await cursor.fetchall()

        return [Forgotten(**row) for row in await self._run(work)]
