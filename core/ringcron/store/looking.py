"""What the dashboard asks of PostgreSQL beside what the API has calls for.

Invariant: for people; nothing decides by it. No call reads the whole table: each is capped, and says so where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from ringcron.errors import RunNotFound
from ringcron.models import Arc
from ringcron.slots import SLOT_COUNT
from ringcron.store.audit import Act, record
from ringcron.store.calls import Calls
from ringcron.store.connection import Connection
from ringcron.store.snapshot import Snapshot, shared_snapshot
from ringcron_sql import query

SEEN_WITHIN_SECONDS: Final = 15.0
"""A worker that has not reported for this long is not shown."""
GONE_WITHIN_SECONDS: Final = 600.0
GONE_SHOWN: Final = 50
DEAD_GROUPED: Final = 10_000
"""Dead jobs that are grouped at most: the newest."""
GROUPS_SHOWN: Final = 200
EPOCHS_KEPT: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadGroup:
    """Dead jobs of one handler whose reasons have the same form. `example` is the newest one's reason."""

    handler: str
    fingerprint: str
    jobs: int
    first_at: datetime
    last_at: datetime
    example: str | None
    example_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class GoneWorker:
    """A worker that stopped reporting, and the slots that it last said it held."""

    worker_id: str
    name: str
    seen_at: datetime
    arcs: tuple[Arc, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transit:
    """An arc on its way from one worker to another; None: from, or to, nobody."""

    arc: Arc
    giver: str | None
    taker: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochNote:
    """An assignment that a coordinator published."""

    epoch: int
    cause: str
    leader: str
    members: int
    slots_moved: int
    slots_unowned: int
    in_transit: tuple[Transit, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch(EpochNote):
    """The same, and when."""

    at: datetime


class Looking(Calls):
    """Reads for people."""

    async def snapshot(self, handlers: Sequence[str]) -> Snapshot:
        """The lag of the moment, a second old at most but for what another process is counting just now."""
        now = await self.now()

        async def work(connection: Connection) -> Snapshot:
            return await shared_snapshot(connection, handlers, now=now)

        return await self._run(work)

    async def dead_groups(self, handler: str | None = None) -> list[DeadGroup]:
        """The newest DEAD_GROUPED dead jobs, in groups, the largest first."""
        parameters = {"handler": handler, "most": DEAD_GROUPED, "groups": GROUPS_SHOWN}
        return [DeadGroup(**row) for row in await self._rows(query("group_dead_jobs"), parameters, prepare=False)]

    async def dead_ids(
        self, *, handler: str | None, fingerprint: str | None, after: UUID | None, limit: int
    ) -> list[UUID]:
        """Dead jobs, the one that was created first coming first."""
        parameters = {
            "after": UUID(int=0) if after is None else after,
            "handler": handler,
            "tag": None,
            "fingerprint": fingerprint,
            "limit": limit,
        }
        return [row["id"] for row in await self._rows(query("list_dead_jobs"), parameters, prepare=False)]

    async def gone_workers(self) -> list[GoneWorker]:
        """Workers that stopped reporting within the last GONE_WITHIN_SECONDS, the latest first. One whose name another
        has reported under since is left out: that one has come in its place."""
        parameters = {"seen_within": SEEN_WITHIN_SECONDS, "within": GONE_WITHIN_SECONDS, "limit": GONE_SHOWN}
        return [
            GoneWorker(
                worker_id=row["worker_id"],
                name=row["name"],
                seen_at=row["seen_at"],
                arcs=tuple(Arc(lo=lo, hi=hi) for held in row["slices"] for lo, hi in held["arcs"]),
            )
            for row in await self._rows(query("list_gone_workers"), parameters, prepare=True)
        ]

    async def epochs(self, limit: int) -> list[Epoch]:
        """The assignments last published, the newest first."""
        return [_epoch(row) for row in await self._rows(query("list_epochs"), {"limit": limit}, prepare=True)]

    async def note_epoch(self, note: EpochNote) -> None:
        """Write down an assignment that was published; a second time changes nothing."""
        transits = [(one.arc.lo, one.arc.hi, one.giver, one.taker) for one in note.in_transit]
        parameters = {
            "epoch": note.epoch,
            "cause": note.cause,
            "leader": note.leader,
            "members": note.members,
            "slots_moved": note.slots_moved,
            "slots_unowned": note.slots_unowned,
            "in_transit": orjson.dumps(transits).decode(),
            "kept": EPOCHS_KEPT,
        }

        async def work(connection: Connection) -> None:
            await connection.execute(query("insert_epoch"), parameters)

        await self._run(work)

    async def job_id_of_key(self, key: str) -> UUID | None:
        """The job that holds a business key."""
        rows = await self._rows(query("find_job_by_key"), {"key": key}, prepare=True)
        return rows[0]["job_id"] if rows else None

    async def ask_drain(self, worker_id: str, by: str, act: Act) -> None:
        """Ask a worker to drain: it hears of it when it next reports. Raises RunNotFound where none has this id."""
        parameters = {"worker_id": worker_id, "by": by, "seen_within": SEEN_WITHIN_SECONDS}

        async def work(connection: Connection) -> bool:
            async with connection.transaction():
                cursor = await connection.execute(query("ask_drain"), parameters)
                if await cursor.fetchone() is None:
                    return False
                await record(connection, act, job_id=None)
                return True

        if not await self._run(work):
            raise RunNotFound(f"no worker has the id {worker_id[:64]}, or it has not reported for a while")


def _epoch(row: dict[str, Any]) -> Epoch:
    return Epoch(
        epoch=row["epoch"],
        at=row["at"],
        cause=row["cause"],
        leader=row["leader"],
        members=row["members"],
        slots_moved=row["slots_moved"],
        slots_unowned=row["slots_unowned"],
        in_transit=tuple(
            Transit(arc=Arc(lo=max(lo, 0), hi=min(hi, SLOT_COUNT - 1)), giver=giver, taker=taker)
            for lo, hi, giver, taker in orjson.loads(row["in_transit"])
        ),
    )
