"""Failover: PostgreSQL is killed and a standby is promoted in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Final

import psycopg

from loadtest.chaos.branches import losses
from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import EVERYTHING, Bite, Stage
from loadtest.chaos.nemeses.postgres import BETWEEN_SECONDS, OWNERS_SHARE, READY_SECONDS, PostgresNemesis
from loadtest.database import Database
from ringcron.local.errors import LocalServerError
from ringcron.local.postgres import PostgresServer
from ringcron.local.postgres_binaries import find_postgres
from ringcron.local.processes import tail, wait_until

FOLLOWED_SECONDS: Final = 5.0
"""For so long commits go to both servers before the first is killed."""
LAG_SECONDS: Final = 3.0
"""So far is the asynchronous standby behind when it is promoted."""
LOOK_SECONDS: Final = 0.1


class Failover(PostgresNemesis):
    """N8: a standby that every commit waits for is promoted when its primary is killed. Nothing that was acknowledged
    may be lost: every invariant holds as if it were the same server."""

    number = "N8"
    title = "PostgreSQL is killed and its synchronous standby promoted"
    replicated = True
    synchronous = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.promotions = 0
        """Of standbys that followed until then as they should."""
        self._standby: PostgresServer | None = None
        self._followed = False
        self._killed_at = 0.0

    def unavailable(self) -> str | None:
        programs = find_postgres().bin_folder
        return None if (programs / "pg_basebackup").exists() else f"{programs} has no pg_basebackup"

    def round(self) -> Iterator[float]:
        self._followed = False
        try:
            self._standby = standby = self.arena.succession.follow(self.arena.postgres)
        except LocalServerError:  # the primary may have other troubles at the same time
            yield BETWEEN_SECONDS
            return
        if self.synchronous:
            self._alter("chaos/follow_synchronously")
        yield from self._until(self.is_followed)
        yield FOLLOWED_SECONDS
        yield from self.prepare(standby)
        self._followed = self.is_as_wanted()
        self._killed_at = self.faults.clock.elapsed()
        with self._felt():
            self.crash()
            self.promote(standby)
            yield from self._until(standby.is_ready)
        self.heal()
        yield BETWEEN_SECONDS

    def prepare(self, standby: PostgresServer) -> Iterator[float]:
        """What is done to the standby before the primary is killed."""
        yield from ()

    def is_as_wanted(self) -> bool:
        """Whether the standby is in the state in which it is to be promoted."""
        return self.is_followed()

    def is_followed(self) -> bool:
        """Whether it receives all that the primary commits."""
        return ("streaming", "sync" if self.synchronous else "async") in self.arena.asked("chaos/list_standbys")

    def retire(self, old: PostgresServer, killed_at: float) -> None:
        """The old server was killed, and its successor takes writes."""
        self.arena.succession.forget(old, self.arena.logs)

    def promote(self, standby: PostgresServer) -> None:
        """Tell it to take writes from now on. It does so once it has replayed what it has."""
        with suppress(psycopg.Error), Database(standby.url) as database:
            database.run("chaos/promote")

    def heal(self) -> None:
        """End the round with one server: the standby, where its primary was killed; else the primary."""
        standby, self._standby = self._standby, None
        if standby is None:
            super().heal()
        elif self._killed_at:
            self._take_over(standby)
        else:
            if self.synchronous:
                self._alter("chaos/follow_no_more")
            standby.stop()
            self.arena.succession.gone(standby)
            self.arena.succession.forget(standby, self.arena.logs)
        self._killed_at = 0.0

    def bite(self, history: History, seconds: float) -> Bite:
        return Bite(
            number=self.number, what="promotions of a standby that had every commit", counted=self.promotions, wanted=1
        )

    def _take_over(self, standby: PostgresServer) -> None:
        """Raises LocalServerError where the standby cannot be promoted."""
        old = self.arena.postgres
        if not standby.is_ready():  # the round was cut short
            with self._felt():
                self.promote(standby)
                wait_until(standby.is_ready, seconds=READY_SECONDS, otherwise=lambda: tail(standby.log))
        self.arena.succession.gone(old)
        self.arena.replace_postgres(standby)
        self.rounds += 1
        self.promotions += self._followed
        self.retire(old, self._killed_at)

    def _felt(self) -> AbstractContextManager[None]:
        return self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease * OWNERS_SHARE)

    def _alter(self, name: str) -> None:
        self.arena.database.run(name)
        self.arena.database.run("chaos/reload_settings")

    def _until(self, holds: Callable[[], bool]) -> Iterator[float]:
        waited = 0.0
        while not holds() and waited < READY_SECONDS:
            waited += LOOK_SECONDS
            yield LOOK_SECONDS


class Forgetting(Failover):
    """N8-async: a standby that no commit waits for is cut off from its primary, and promoted 3 s of commits later.
    They are lost, acknowledged or not. No generation may be given out again, a run under a lost claim must stop, and
    what each server says must hold by itself."""

    number = "N8-async"
    title = "PostgreSQL is killed and a standby promoted that lacks its last 3 s"
    synchronous = False
    alone = True

    def prepare(self, standby: PostgresServer) -> Iterator[float]:
        with Database(standby.url) as database:
            database.run("chaos/stop_following")
            database.run("chaos/reload_settings")
        yield from self._until(self.is_as_wanted)
        yield LAG_SECONDS

    def is_as_wanted(self) -> bool:
        return not self.arena.asked("chaos/list_standbys")

    def retire(self, old: PostgresServer, killed_at: float) -> None:
        self.arena.abandoned.append(self.arena.succession.testimony(old, killed_at))
        super().retire(old, killed_at)

    def bite(self, history: History, seconds: float) -> Bite:
        lost = losses(history)
        return Bite(
            number=self.number,
            what=f"acknowledged creates lost in {self.promotions} promotions, and {len(lost.claims)} claims, of which "
            f"{lost.ran} had begun and {lost.again} were made again",
            counted=lost.creates if self.promotions and lost.again else 0,
            wanted=1,
        )
