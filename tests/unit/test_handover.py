"""Revoke, acknowledge, grant: no two live members ever hold one slot, and every slot is owned in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcron.assignment import Assignment, Revocation
from ringcron.members import Ack, Incarnation, Member
from ringcron.models import Slice
from ringcron_coordinator.handover import Live, awaited, next_assignment
from ringcron_coordinator.planner import plan
from tests.unit.test_planner import member

SIZE = 16


def following(
    previous: Assignment | None,
    members: list[Member],
    live: Live,
    passed_over: set[Revocation] | None = None,
    lineage: str = "l1",
) -> Assignment | None:
    return next_assignment(
        previous,
        plan(members, SIZE),
        live,
        passed_over=passed_over or set(),
        ring_size=SIZE,
        lineage=lineage,
        leader="c.0",
        cause="test",
    )


def must(found: Assignment | None) -> Assignment:
    assert found is not None
    return found


def acks(members: list[Member], epoch: int, lineage: str = "l1") -> dict[Incarnation, Ack]:
    return {one.incarnation: Ack(epoch, lineage) for one in members}


def started(members: list[Member]) -> Assignment:
    """An assignment in which everything is granted as planned."""
    empty = must(following(None, [], {}))
    return must(following(empty, members, acks(members, 0)))


A, B = member("a", czxid=1), member("b", czxid=2)


class TestSteps:
    def test_slots_without_a_live_owner_are_granted_at_once(self) -> None:
        first = started([A, B])
        assert not first.revocations()
        alone = must(following(first, [A], acks([A], first.epoch)))
        assert (alone.epoch, alone.revocations(), alone.unowned()) == (first.epoch + 1, frozenset(), ())

    def test_a_moving_slot_is_revoked_then_granted_once_its_owner_has_acknowledged(self) -> None:
        first = started([A])
        revoked = must(following(first, [A, B], acks([A, B], first.epoch)))
        assert revoked.revocations() == {Revocation(A.incarnation, revoked.epoch)}
        assert revoked.granted(B.incarnation) == ()
        assert following(revoked, [A, B], acks([A, B], first.epoch)) is None
        granted = must(following(revoked, [A, B], acks([A], revoked.epoch) | acks([B], 0)))
        assert granted.epoch == revoked.epoch + 1
        assert not granted.revocations()
        assert granted.rings == started([A, B]).rings

    def test_a_silent_owner_is_passed_over(self) -> None:
        first = started([A])
        revoked = must(following(first, [A, B], acks([A, B], 0)))
        (revocation,) = revoked.revocations()
        assert awaited(revoked, acks([A, B], 0)) == {revocation: frozenset({A.incarnation})}
        granted = must(following(revoked, [A, B], acks([A, B], 0), {revocation}))
        assert granted.rings == started([A, B]).rings

    def test_an_owner_that_dies_need_not_acknowledge(self) -> None:
        first = started([A])
        revoked = must(following(first, [A, B], acks([A, B], 0)))
        granted = must(following(revoked, [B], acks([B], 0)))
        assert (granted.revocations(), granted.unowned()) == (frozenset(), ())

    def test_an_acknowledgement_of_an_older_epoch_does_not_count(self) -> None:
        first = started([A])
        revoked = must(following(first, [A, B], acks([A, B], first.epoch)))
        (missing,) = awaited(revoked, acks([A, B], revoked.epoch - 1)).values()
        assert missing == {A.incarnation}

    def test_slots_in_transit_go_back_when_the_plan_changes_back(self) -> None:
        first = started([A])
        revoked = must(following(first, [A, B], acks([A, B], first.epoch)))
        back = must(following(revoked, [A], acks([A], first.epoch)))
        assert back.rings == first.rings

    def test_who_registers_again_is_another(self) -> None:
        first = started([A, B])
        again = member("a", czxid=9)
        second = must(following(first, [again, B], acks([again, B], first.epoch)))
        assert second.granted(A.incarnation) == ()
        assert second.granted(again.incarnation) == first.granted(A.incarnation)

    def test_a_lost_assignment_is_granted_anew_only_when_everybody_has_acknowledged(self) -> None:
        blank = must(following(None, [A, B], acks([A], 6) | acks([B], 3)))
        assert blank.epoch == 7
        assert blank.granted(A.incarnation) == blank.granted(B.incarnation) == ()
        assert following(blank, [A, B], acks([A], blank.epoch) | acks([B], 3)) is None
        granted = must(following(blank, [A, B], acks([A, B], blank.epoch)))
        assert granted.rings == started([A, B]).rings

    def test_a_late_acknowledgement_of_a_lost_assignment_does_not_count_for_the_new_one(self) -> None:
        blank = must(following(None, [A, B], acks([A, B], 0), lineage="l2"))  # lost before anybody had acknowledged it
        late = must(following(blank, [A, B], acks([A, B], 5)))
        assert late.epoch == 6
        assert late.granted(A.incarnation) == late.granted(B.incarnation) == ()

    def test_the_epoch_is_above_every_epoch_that_a_live_member_has_seen(self) -> None:
        first = started([A])
        assert must(following(first, [A], acks([A], 900))).epoch == 901
        assert following(first, [A], acks([A], first.epoch)) is None

    def test_a_live_member_that_is_planned_with_no_more_is_revoked(self) -> None:
        """The older of two incarnations of a name, or a node whose data was spoilt: it may still claim."""
        first = started([A])
        newer = member("a", czxid=5)
        revoked = must(following(first, [newer], acks([A, newer], first.epoch)))
        assert revoked.revocations() == {Revocation(A.incarnation, revoked.epoch)}
        assert revoked.granted(A.incarnation) == revoked.granted(newer.incarnation) == ()

    def test_a_handler_that_comes_and_goes_moves_nothing_of_the_others(self) -> None:
        first = started([A, B])
        gpu = member("c", czxid=3, handlers=("gpu",))
        second = must(following(first, [A, B, gpu], acks([A, B, gpu], 0)))
        assert second.granted(A.incarnation) == first.granted(A.incarnation)
        assert second.granted(gpu.incarnation)[0].handlers == ("gpu",)
        third = must(following(second, [A, B], acks([A, B], 0)))
        assert third.rings == first.rings

    @pytest.mark.parametrize("joining", [1, 3, 30])
    def test_a_mass_join_costs_two_more_versions(self, joining: int) -> None:
        first = started([A])
        fleet = [A, *(member(f"w{number}", czxid=100 + number) for number in range(joining))]
        second = must(following(first, fleet, acks(fleet, 0)))
        third = must(following(second, fleet, acks(fleet, second.epoch)))
        assert third.rings == started(fleet).rings
        assert following(third, fleet, acks(fleet, third.epoch)) is None


@dataclass
class Worker:
    """A worker that follows the protocol: see slice_holder."""

    member: Member
    registered: bool = True
    applied: Ack = field(default_factory=Ack)
    acked: Ack = field(default_factory=Ack)
    acked_in_node: Ack = field(default_factory=Ack)
    slices: tuple[Slice, ...] = ()
    claims: list[tuple[Slice, ...]] = field(default_factory=list)  # in flight, with the slices they began under

    def read(self, assignment: Assignment | None) -> None:
        if assignment is None:
            self.slices = ()  # kept in truth, but unproven
        elif assignment.epoch >= self.acked.epoch:
            self.slices = assignment.granted(self.member.incarnation)
            self.applied = Ack(assignment.epoch, assignment.lineage)

    def acknowledge(self) -> None:
        if all(began_under == self.slices for began_under in self.claims):
            self.acked = self.applied

    def held(self) -> Iterator[tuple[str, int]]:
        for part in {part for slices in [self.slices, *self.claims] for part in slices}:
            for handler in part.handlers:
                for arc in part.arcs:
                    for slot in range(arc.lo, arc.hi + 1):
                        yield handler, slot


class History:
    """Joins, losses, late reads, lost and late acknowledgements, slow leaders and lost assignments, at random."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.workers: list[Worker] = []
        self.assignment: Assignment | None = None
        self.looked: tuple[Assignment | None, list[Member], dict[Incarnation, Ack]] | None = None
        self.zxid = self.lineages = 0
        for _ in range(random.randint(1, 4)):
            self.join()
        for _ in range(3):
            self.look_and_publish()
            self.everybody_reads_and_acknowledges()

    def live(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.registered]

    def some(self) -> list[Worker]:
        return [worker for worker in self.live() if self.random.random() < 0.5]

    def is_free(self, name: str) -> bool:
        return all(worker.member.name != name for worker in self.live())

    def join(self) -> None:
        name = self.random.choice("abcde")
        if self.is_free(name):
            self.zxid += 1
            handlers = tuple(sorted({"log", self.random.choice(["log", "http"])}))
            self.workers.append(
                Worker(member(name, handlers=handlers, capacity=self.random.randint(0, 3), czxid=self.zxid))
            )

    def lose_session(self) -> None:
        """The server ends a session only when the worker has not been proven for a third of it already."""
        for worker in self.some()[:1]:
            worker.registered, worker.slices, worker.claims = False, (), []

    def register_again(self) -> None:
        """Before anybody has looked, perhaps; and with the slices that it held, until it reads again."""
        gone = [worker for worker in self.workers if not worker.registered]
        if gone and self.is_free((worker := self.random.choice(gone)).member.name):
            self.zxid += 1
            worker.member = replace(worker.member, incarnation=worker.member.incarnation._replace(czxid=self.zxid))
            worker.registered, worker.acked_in_node = True, worker.acked

    def some_read(self) -> None:
        for worker in self.some():
            worker.read(self.assignment)

    def some_acknowledge(self) -> None:
        for worker in self.some():
            worker.acknowledge()
            if self.random.random() < 0.7:
                worker.acked_in_node = worker.acked

    def some_begin_claims(self) -> None:
        for worker in self.some():
            worker.claims.append(worker.slices)

    def some_end_claims(self) -> None:
        for worker in self.some():
            worker.claims.clear()

    def look(self) -> None:
        """A leader reads; other things may happen before it writes."""
        live = self.live()
        members = [worker.member for worker in live]
        self.looked = (self.assignment, members, {one.member.incarnation: one.acked_in_node for one in live})

    def publish(self) -> None:
        if self.looked is not None:
            (previous, members, live), self.looked = self.looked, None
            if previous is self.assignment:  # else ZooKeeper refuses the write
                self.lineages += previous is None
                self.assignment = following(previous, members, live, lineage=f"l{self.lineages}") or previous

    def look_and_publish(self) -> None:
        self.look()
        self.publish()

    def everybody_reads_and_acknowledges(self) -> None:
        for worker in self.live():
            worker.read(self.assignment)
            worker.acknowledge()
            worker.acked_in_node = worker.acked

    def lose_the_assignment(self) -> None:
        self.assignment = None

    def take_a_step(self) -> None:
        steps = [self.join, self.lose_session, self.register_again, self.look, self.publish, self.lose_the_assignment]
        steps += [self.some_end_claims, self.everybody_reads_and_acknowledges]
        steps += 2 * [self.some_begin_claims, self.some_read, self.some_acknowledge, self.look_and_publish, self.join]
        self.random.choice(steps)()
        self.check()

    def check(self) -> None:
        """No two live members hold one slot of one ring."""
        holders: dict[tuple[str, int], Worker] = {}
        for worker in self.live():
            for place in set(worker.held()):
                assert place not in holders, (place, worker, holders[place], self.assignment)
                holders[place] = worker

    def come_to_rest(self) -> None:
        """Every slot of every ring comes to whom the plan gives it, within few versions."""
        self.look_and_publish()
        for worker in self.live():
            worker.claims.clear()
        for _ in range(3):
            self.everybody_reads_and_acknowledges()
            self.look_and_publish()
            self.check()
        assert self.assignment is not None
        assert self.assignment.rings == plan([worker.member for worker in self.live()], SIZE)


@settings(max_examples=1000, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_two_live_members_ever_hold_one_slot_and_every_slot_is_owned_in_the_end(seed: int) -> None:
    history = History(Random(seed))
    for _ in range(50):
        history.take_a_step()
    history.come_to_rest()
