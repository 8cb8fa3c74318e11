"""Revoke, acknowledge, grant: no two live members ever hold one slot, and every slot is owned in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ringcron.assignment import Assignment
from ringcron.members import Ack, Incarnation, Member
from ringcron.models import Slice
from ringcron_coordinator.planner import plan
from tests.unit.test_handover import SIZE, following
from tests.unit.test_planner import member


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
