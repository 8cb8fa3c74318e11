"""The planner: who ought to own which slots of which ring."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron import ring
from ringcron.assignment import Ring
from ringcron.members import Ack, Incarnation, Member, MemberNode, read_members
from ringcron_coordinator.planner import plan
from tests.unit.test_members import JUNK

HANDLERS = ["log", "http", "command", "report"]


def member(name: str, *, capacity: int = 10, handlers: tuple[str, ...] = ("log",), czxid: int = 1) -> Member:
    return Member(
        incarnation=Incarnation(f"{name}.00000000", czxid),
        name=name,
        capacity=capacity,
        handlers=handlers,
        version="1",
        acked=Ack(),
    )


FLEETS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.tuples(st.integers(0, 50), st.sets(st.sampled_from(HANDLERS)), st.integers(1, 1000)),
    max_size=25,
).map(
    lambda fleet: [
        member(name, capacity=capacity, handlers=tuple(sorted(handlers)), czxid=czxid)
        for name, (capacity, handlers, czxid) in fleet.items()
    ]
)


def loads(planned: Ring) -> Counter[Incarnation | None]:
    counted: Counter[Incarnation | None] = Counter()
    for arc, cell in planned.arcs:
        counted[cell.owner] += len(arc)
    return counted


@given(FLEETS, st.sampled_from([64, 4096]))
def test_each_ring_is_complete_disjoint_bounded_and_owned_by_who_has_its_handlers(
    fleet: list[Member], size: int
) -> None:
    rings = plan(fleet, size)
    capable = [one for one in fleet if one.capacity > 0]
    on_rings = [handler for planned in rings for handler in planned.handlers]
    assert sorted(on_rings) == sorted({handler for one in capable for handler in one.handlers})
    for planned in rings:
        assert planned.arcs[0][0].lo == 0
        assert planned.arcs[-1][0].hi == size - 1
        for (earlier, _), (later, _) in zip(planned.arcs, planned.arcs[1:], strict=False):
            assert later.lo == earlier.hi + 1
        members = [one for one in capable if set(planned.handlers) <= set(one.handlers)]
        total = sum(one.capacity for one in members)
        by_incarnation = {one.incarnation: one for one in members}
        for owner, load in loads(planned).items():
            assert owner is not None
            assert load <= ring.room(by_incarnation[owner].capacity, total, size)


@given(FLEETS, st.randoms())
def test_the_order_of_the_members_does_not_matter(fleet: list[Member], random: object) -> None:
    shuffled = list(fleet)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan(shuffled, 64) == plan(fleet, 64)


@given(st.lists(st.tuples(JUNK, st.integers(0, 3)), max_size=10))
def test_any_junk_can_be_planned_with(junk: list[tuple[bytes, int]]) -> None:
    nodes = [MemberNode(id=f"n{number}", data=data, czxid=czxid) for number, (data, czxid) in enumerate(junk)]
    for planned in plan(read_members(nodes).planned, 64):
        assert sum(loads(planned).values()) == 64


def test_handlers_of_the_same_members_share_one_ring() -> None:
    everywhere = [member(f"w{number}", handlers=("http", "log")) for number in range(4)]
    (one,) = plan(everywhere, 4096)
    assert one.handlers == ("http", "log")


def test_a_handler_that_only_some_have_lies_on_their_ring() -> None:
    fleet = [member("a", handlers=("log",)), member("b", handlers=("log",)), member("c", handlers=("log", "gpu"))]
    gpu, log = plan(fleet, 4096)
    assert (gpu.handlers, set(loads(gpu))) == (("gpu",), {fleet[2].incarnation})
    assert (log.handlers, set(loads(log))) == (("log",), {one.incarnation for one in fleet})


def test_a_member_without_capacity_owns_nothing_and_makes_no_ring() -> None:
    assert plan([member("idle", capacity=0)], 64) == ()
    (one,) = plan([member("idle", capacity=0), member("busy")], 64)
    assert set(loads(one)) == {member("busy").incarnation}


def test_a_name_that_comes_back_gets_the_slots_it_had() -> None:
    before = plan([member("a"), member("b"), member("c")], 4096)
    after = plan([member("a"), member("b", czxid=99), member("c")], 4096)
    assert [arc for arc, _ in before[0].arcs] == [arc for arc, _ in after[0].arcs]


@pytest.mark.parametrize("capacity", [1, 1_000_000])
def test_more_members_than_slots(capacity: int) -> None:
    (one,) = plan([member(f"w{number}", capacity=capacity) for number in range(200)], 64)
    assert set(loads(one).values()) == {1}
