"""Revoke, acknowledge, grant: each step by itself."""

from __future__ import annotations

import pytest

from ringcron.assignment import Assignment, Revocation
from ringcron.members import Ack, Incarnation, Member
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
