"""The one retry wrapper of the store: what it does again, how often, and what it hands on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.errors import StoreUnavailable
from ringcron.store.connection import ATTEMPTS, Connection, transact

MOVED = psycopg.errors.SerializationFailure("tuple to be locked was already moved to another partition")
DEADLOCK = psycopg.errors.DeadlockDetected("deadlock detected")
CUT = psycopg.OperationalError("the connection is lost")  # says nothing of the commit: it has no SQLSTATE
READ_ONLY = psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")


class Source:
    """Connections that carry nothing, and how often they were asked to recover."""

    def __init__(self) -> None:
        self.recovered = 0

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        yield cast(Connection, None)

    async def recover(self) -> None:
        self.recovered += 1


class Work:
    """Fails as told, one failure a try, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.tries = 0

    async def __call__(self, connection: Any) -> str:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


async def attempt(work: Work, *, repeatable: bool, source: Source | None = None) -> str:
    return await transact(source or Source(), work, repeatable=repeatable, give_up_after=0.0, clock=SystemClock())


@pytest.mark.parametrize("conflict", [MOVED, DEADLOCK], ids=["40001", "40P01"])
async def test_a_conflict_is_tried_again_whatever_the_work_is(conflict: Exception) -> None:
    """P1, P20: the transaction was rolled back, so also work that must not be done twice may be done again."""
    work = Work(*[conflict] * (ATTEMPTS - 1))
    assert await attempt(work, repeatable=False) == "done"
    assert work.tries == ATTEMPTS


async def test_conflicts_without_end_are_handed_on() -> None:
    work = Work(*[MOVED] * (ATTEMPTS + 1))
    with pytest.raises(psycopg.errors.SerializationFailure):
        await attempt(work, repeatable=True)
    assert work.tries == ATTEMPTS


@pytest.mark.parametrize("loss", [CUT, READ_ONLY], ids=["cut", "read-only"])
async def test_work_of_an_unknown_commit_is_done_again_only_where_it_may_be(loss: Exception) -> None:
    """P8: a lost connection does not say whether the commit landed, so a claim is never sent again."""
    once, again = Work(loss), Work(loss)
    source = Source()
    with pytest.raises(StoreUnavailable):
        await attempt(once, repeatable=False)
    assert await attempt(again, repeatable=True, source=source) == "done"
    assert (once.tries, again.tries, source.recovered) == (1, 2, 1)


async def test_a_session_that_only_reads_is_left_also_where_the_work_is_not_repeated() -> None:
    """A52: it would be used again otherwise, for ever: nothing ends it."""
    source = Source()
    with pytest.raises(StoreUnavailable):
        await attempt(Work(READ_ONLY), repeatable=False, source=source)
    assert source.recovered == 1


async def test_what_is_wrong_with_the_statement_is_not_repeated() -> None:
    work = Work(psycopg.errors.CheckViolation("no partition for the row"))
    with pytest.raises(psycopg.errors.CheckViolation):
        await attempt(work, repeatable=True)
    assert work.tries == 1
