"""What a worker asks of PostgreSQL: claim, peek, settle, renew, complete, reap, hand back.

Invariant: every write of a run carries the fence (id, state claimed, generation, owner). After an unknown commit
nothing is assumed: a completion is looked up in `runs` (ringcron.store.completing), a claim is handed back.

Two connections a worker at most: `main` for everything, `renewals` for the lease keeper alone, so that a slow claim
cannot delay a renewal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog

from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import StatementFailed, StatementRefused
from ringcron.models import Arc, Claim, WorkerReport
from ringcron.policies import Settlement
from ringcron.ring import WHOLE_RING
from ringcron.store.answers import Completed, EndedRun, Head, Peek, Reaped, Renewed
from ringcron.store.bounds import UNBOUNDED, Bounds
from ringcron.store.claimed import CLAIMED_AT, Claimed, Undecodable, claim_of, decode_claimed
from ringcron.store.completing import complete_runs, days_of, json_text, skip_fields, span_of
from ringcron.store.connection import Connection, rows_of, transact
from ringcron.store.link import Link
from ringcron.store.pinned import pinned

READ_AT_ONCE: Final = 100
_VALUE_FAULTS: Final = frozenset({"22", "23", "54"})
_NO_JOB: Final = UUID(int=0)
_NO_HANDLER: Final = ""
_NEXT_RUN_AT: Final = attrgetter("next_run_at")
_log = structlog.get_logger(__name__)


class WorkerStore:
    """The statements of one worker incarnation, `worker_id`."""

    def __init__(
        self,
        url: str,
        *,
        worker_id: str,
        clock: Clock,
        database_clock: DatabaseClock,
        lease_seconds: float,
        statement_seconds: float,
        on_bell: Callable[[str], object] | None = None,
        behind_pooler: bool = False,
    ) -> None:
        """`statement_seconds`: client-side limit on one statement; renewals get an eighth of the lease. `on_bell` is
        given each message of the bell; None: there is none to be heard, as `behind_pooler`."""
        self._worker_id = worker_id
        self._clock = clock
        self._database_clock = database_clock
        self._lease_seconds = lease_seconds
        self.main = Link(url, application_name=worker_id, seconds=statement_seconds, behind_pooler=behind_pooler)
        self.renewals = Link(
            url,
            application_name=f"{worker_id}/renew",
            seconds=lease_seconds / 8,
            on_bell=on_bell,
            behind_pooler=behind_pooler,
        )

    @property
    def hears_the_bell(self) -> bool:
        """Whether the connection that hears the bell is up, as far as is known."""
        return self.renewals.listens

    async def close(self) -> None:
        """Close both connections."""
        await self.main.close()
        await self.renewals.close()

    async def claim(
        self,
        arc: Arc,
        handlers: Sequence[str],
        *,
        batch: int,
        bounds: Bounds,
        overdue_seconds: float = 0.0,
        solo: bool = False,
    ) -> list[Claim]:
        """Claim up to `batch` of the oldest due jobs of `handlers` in `arc` that are due for `overdue_seconds` or more.

        Oldest first. Raises StoreUnavailable after a lost connection: the claim may have been made, so the caller
        hands back what it does not know of (`release_unknown_claims`) before it claims again.
        """
        parameters = {
            "handlers": list(handlers),
            "lo": arc.lo,
            "hi": arc.hi,
            "from_at": bounds.from_at,
            "until_at": bounds.until_at,
            "overdue": overdue_seconds,
            "solo": solo,
            "batch": batch,
            "owner": self._worker_id,
            "lease": self._lease_seconds,
        }
        rows = await self._main("claim", parameters, repeatable=False)
        if rows:
            self._database_clock.observe(rows[-1][CLAIMED_AT], self._clock.elapsed())
        return sorted(map(claim_of, rows), key=_NEXT_RUN_AT)

    async def peek(
        self,
        own: Sequence[tuple[str, Arc]],
        ring: Sequence[str],
        handlers: Sequence[str],
        bounds: Bounds,
        *,
        arcs: Bounds,
        horizon_seconds: float,
    ) -> Peek:
        """What is due next for each (handler, arc) of `own`, for each handler of `ring` on the whole ring, for
        quarantined jobs of `handlers`, and when the next lease of anybody lapses.

        Parts of the ring are looked into within the bounds `arcs` only, and for what falls due within the horizon.
        """
        asked = [*own, *((handler, WHOLE_RING) for handler in ring)]
        parameters = {
            "ranks": list(range(len(asked))),
            "handlers": [handler for handler, _ in asked],
            "los": [arc.lo for _, arc in asked],
            "his": [arc.hi for _, arc in asked],
            "wanted": list(handlers),
            "horizon": horizon_seconds,
            "from_at": bounds.from_at,
            "until_at": bounds.until_at,
            "arcs_from_at": arcs.from_at,
            "arcs_until_at": arcs.until_at,
        }
        rows = await self._main("peek", parameters, repeatable=True)
        answered_at = self._clock.elapsed()
        self._database_clock.observe(rows[0][0], answered_at)
        found = sorted(((row[5], row[4]) for row in rows if row[4] is not None), key=lambda pair: pair[0])
        heads = [(rank, Head(handler=asked[rank][0], arc=asked[rank][1], wait_seconds=wait)) for wait, rank in found]
        return Peek(
            heads=tuple(head for rank, head in heads if rank < len(own)),
            ring=tuple(head for rank, head in heads if rank >= len(own)),
            lapse_seconds=rows[0][1],
            solo_wait_seconds=rows[0][2],
            beyond=rows[0][3],
            answered_at=answered_at,
        )

    async def definitions(self, claims: Sequence[Claim]) -> list[Claimed | Undecodable]:
        """The definitions of rows just claimed, each decoded by itself: those that came with the claim, and the large
        ones, which are read now. A row whose lease is gone meanwhile may be left out."""
        decoded = [decode_claimed(claim, claim.inline) for claim in claims if claim.inline is not None]
        if len(decoded) < len(claims):
            decoded += await self.read_claimed([claim for claim in claims if claim.inline is None])
        return decoded

    async def read_claimed(self, claims: Sequence[Claim]) -> list[Claimed | Undecodable]:
        """The definitions of claimed rows as they are now; each row is decoded by itself. A row whose lease is gone is
        left out.

        In portions: a batch of the largest payloads must not outlast the limit on one statement.
        """
        decoded: list[Claimed | Undecodable] = []
        for start in range(0, len(claims), READ_AT_ONCE):
            portion = claims[start : start + READ_AT_ONCE]
            by_token = {(claim.id, claim.lease_generation): claim for claim in portion}
            parameters = {
                "ids": [claim.id for claim in portion],
                "next_run_ats": [claim.next_run_at for claim in portion],
                "owner": self._worker_id,
                **span_of(portion),
            }
            rows = await self._main("read_claimed", parameters, repeatable=True)
            decoded += [
                decode_claimed(by_token[row[0], row[1]], row[2:]) for row in rows if (row[0], row[1]) in by_token
            ]
        return decoded

    async def settle_claims(self, settlements: Sequence[tuple[Claim, Settlement]]) -> set[UUID]:
        """Write settlements down; returns the ids whose fence let it pass."""
        rows = [
            {
                "id": claim.id,
                "next_run_at": claim.next_run_at,
                "lease_generation": claim.lease_generation,
                "release": settlement.release,
                "done": settlement.done,
                "restart": settlement.restart,
                "following": settlement.next_run_at,
                "old_scheduled_for": claim.scheduled_for,
                "old_cause": claim.cause,
                "scheduled_for": settlement.scheduled_for,
                "cause": settlement.cause,
                "kept": list(settlement.kept) or None,
                **skip_fields(settlement.skip),
            }
            for claim, settlement in settlements
        ]
        parameters = {"rows": json_text(rows), "owner": self._worker_id, **span_of([claim for claim, _ in settlements])}
        settled = await self._main("settle_claims", parameters, repeatable=True)
        return {row[0] for row in settled}

    async def renew_leases(self, claims: Sequence[Claim]) -> Renewed:
        """Renew the leases of `claims`, once: no second try here, the lease keeper decides about time."""
        ordered = sorted(claims, key=lambda claim: claim.id)
        parameters = {
            "ids": [claim.id for claim in ordered],
            "next_run_ats": [claim.next_run_at for claim in ordered],
            "generations": [claim.lease_generation for claim in ordered],
            "owner": self._worker_id,
            "lease": self._lease_seconds,
            **span_of(ordered),
        }
        rows = await self._execute(self.renewals, "renew_leases", parameters, repeatable=False)
        if rows:
            self._database_clock.observe(rows[-1][3], self._clock.elapsed())
        return Renewed(held={(row[0], row[1]): row[2] for row in rows})

    async def keep_listening(self) -> None:
        """Prove the renewing connection, and open it where it is gone: it hears the bell also while nothing is held.

        By renewing nothing, so that the statement is planned by the time it is needed.
        """
        now = self._database_clock.now()
        parameters = {
            "ids": [_NO_JOB],
            "next_run_ats": [now],
            "generations": [1],
            "owner": self._worker_id,
            "lease": self._lease_seconds,
            **days_of(now, now),
        }
        await self._execute(self.renewals, "renew_leases", parameters, repeatable=False)

    async def warm_up(self, bounds: Bounds) -> None:
        """Have PostgreSQL plan what jobs within `bounds` will need: a claim and a completion, of nothing. Planned when
        many workers need them at once, they would keep all of them waiting."""
        await self.claim(WHOLE_RING, [_NO_HANDLER], batch=1, bounds=bounds)
        now = self._database_clock.now()
        for day in {now.date(): now, bounds.until_at.date(): bounds.until_at}.values():
            parameters = {"rows": "[]", "owner": self._worker_id, **days_of(day, day)}
            await self._main("complete_runs", parameters, repeatable=True)

    async def complete_runs(self, ended: Sequence[EndedRun]) -> Completed:
        """Write completions, at most one statement's worth. Raises StoreUnavailable while the database is away, and
        StatementRefused where a value in them cannot be stored."""
        return await complete_runs(self._main, ended, owner=self._worker_id, now=self._clock.elapsed())

    async def release_unknown_claims(self, known: Sequence[Claim]) -> list[UUID]:
        """Hand back every claim of this worker up to now that is not among `known`; returns the ids.

        "Now" allows for half of the time after which a statement is given up: so far the estimated clock may be behind.
        """
        allowance = timedelta(seconds=self._lease_seconds / 16)
        parameters = {
            "claimed_by": self._database_clock.now() + allowance,
            "ids": [claim.id for claim in known],
            "generations": [claim.lease_generation for claim in known],
            "owner": self._worker_id,
            "from_at": UNBOUNDED.from_at,
            "until_at": UNBOUNDED.until_at,
        }
        rows = await self._main("release_unknown_claims", parameters, repeatable=True)
        return [row[0] for row in rows]

    async def reap_leases(self, bounds: Bounds, *, expected_now: datetime, backend: int | None = None) -> list[Reaped]:
        """Take back up to 100 lapsed leases; nothing where the database's clock is not what was expected (±1 s), or
        where `main` is not connected to that `backend` (Link.generation) any more: who reconnects has watched nothing.
        """
        parameters = {"from_at": bounds.from_at, "until_at": bounds.until_at, "expected_now": expected_now}
        rows = await self._execute(self.main, "reap_leases", parameters, repeatable=True, backend=backend)
        return [Reaped(job_id=row[0], lease_generation=row[1], lease_owner=row[2], convicted=row[3]) for row in rows]

    async def look(self) -> None:
        """Read the database's clock."""
        rows = await self._main("read_clock", {}, repeatable=True)
        self._database_clock.observe(rows[0][0], self._clock.elapsed())

    async def report_worker(self, report: WorkerReport) -> str | None:
        """Say who this worker is and what it holds. Answers with who asked it to drain, if somebody did."""
        slices = [
            {"handlers": held.handlers, "arcs": [[arc.lo, arc.hi] for arc in held.arcs]} for held in report.slices
        ]
        parameters = {
            "worker_id": report.worker_id,
            "name": report.name,
            "capacity": report.capacity,
            "running": report.running,
            "handlers": list(report.handlers),
            "version": report.version,
            "tzdata": report.tzdata,
            "epoch": report.epoch,
            "draining": report.draining,
            "slices": json_text(slices),
            "report_seconds": report.report_seconds,
            "mean_seconds": json_text(report.mean_seconds),
        }
        rows = await self._main("report_worker", parameters, repeatable=True)
        asked_by: str | None = rows[0][0]
        return asked_by

    async def forget_worker(self) -> None:
        """Remove this worker's report, and those of workers long gone."""
        await self._main("forget_worker", {"worker_id": self._worker_id}, repeatable=True)

    async def _main(self, name: str, parameters: dict[str, Any], *, repeatable: bool) -> list[tuple[Any, ...]]:
        return await self._execute(self.main, name, parameters, repeatable=repeatable)

    async def _execute(
        self, link: Link, name: str, parameters: dict[str, Any], *, repeatable: bool, backend: int | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows; none, and nothing done, where `link` has come to another backend than the one that is named."""
        statement = pinned(name, parameters)

        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            if backend is not None and backend != link.generation:
                return []
            return await rows_of(await connection.execute(statement, parameters, binary=True))

        # One more try on a fresh connection is worth it; longer outages are the loops' to wait out.
        try:
            return await transact(link, work, repeatable=repeatable, give_up_after=0.0, clock=self._clock)
        except psycopg.Error as error:
            # Only a fault of a value is final; anything else (conflicts without end, a full disk) may pass.
            if (error.sqlstate or "")[:2] in _VALUE_FAULTS:
                raise StatementRefused(str(error)) from error
            raise StatementFailed(f"{name}: {type(error).__name__}: {error}") from error
