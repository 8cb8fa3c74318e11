"""The bell: heard between statements, lost without harm."""

from __future__ import annotations

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from ringcron.bell import SLOTS_NAMED, Bell, decode_bell, encode_bells
from ringcron.models import Arc, Holding, Slice
from ringcron.store.bell import Ringer
from ringcron.store.link import Link
from tests.support.waiting import until


def holding(lo: int, hi: int, *, proven: bool = True) -> Holding:
    return Holding(epoch=1, slices=(Slice(handlers=("a",), arcs=(Arc(lo=lo, hi=hi),)),), proven=proven)


@given(
    slots=st.sets(st.integers(0, 4095)),
    cancels=st.sets(st.tuples(st.uuids(), st.integers(1, 2**63 - 1)), max_size=90),
)
def test_what_is_rung_is_what_is_heard(slots: set[int], cancels: set[tuple[UUID, int]]) -> None:
    messages = encode_bells(slots, cancels)
    heard = [decode_bell(message) for message in messages]
    assert all(len(message) < 8000 for message in messages)
    assert set().union(*(bell.cancels for bell in heard)) == cancels
    if len(slots) > SLOTS_NAMED:
        assert heard[0].slots is None
    else:
        assert set().union(*(bell.slots or () for bell in heard)) == slots


def test_a_bell_concerns_the_owner_and_whoever_is_not_sure() -> None:
    assert Bell(slots=frozenset({5})).concerns(holding(0, 10))
    assert not Bell(slots=frozenset({50})).concerns(holding(0, 10))
    assert Bell(slots=frozenset({50})).concerns(holding(0, 10, proven=False))
    assert Bell(slots=None).concerns(holding(0, 10))
    assert not Bell(cancels=frozenset({(uuid4(), 1)})).concerns(holding(0, 10, proven=False))
    assert decode_bell("from another version").concerns(holding(0, 10))


async def test_it_is_heard_while_the_connection_is_idle_and_after_it_was_lost(database_url: str) -> None:
    heard: list[str] = []
    link = Link(database_url, application_name="listener", seconds=5, on_bell=heard.append)
    ringer = Ringer(database_url, application_name="ringer")
    await ringer.start()
    async with link.connection() as connection:
        await connection.execute("select 1")

    ringer.due_soon(7)
    await until(lambda: heard, what="the first bell")
    assert decode_bell(heard[0]) == Bell(slots=frozenset({7}))

    await link.recover()
    async with link.connection() as connection:
        await connection.execute("select 1")
    job_id = uuid4()
    ringer.cancel(job_id, 3)
    await until(lambda: len(heard) > 1, what="a bell on the new connection")
    assert decode_bell(heard[1]).cancels == {(job_id, 3)}
    await ringer.close()
    await link.close()
