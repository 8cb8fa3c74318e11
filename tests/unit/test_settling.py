"""When the leader acts: after quiet, and when acknowledgements are in or overdue."""

from __future__ import annotations

from ringcron.assignment import Revocation
from ringcron.members import Incarnation
from ringcron_coordinator.settling import Patience, Quiet

A, B = Incarnation("a.0", 1), Incarnation("b.0", 2)
OF_A, OF_B, LATER = Revocation(A, 7), Revocation(B, 7), Revocation(A, 8)
NONE: frozenset[Incarnation] = frozenset()


class TestQuiet:
    def test_the_first_look_is_a_change(self) -> None:
        quiet = Quiet(2, 10)
        assert quiet.due() is None
        quiet.see("one", 100)
        assert quiet.due() == 102

    def test_it_waits_for_quiet(self) -> None:
        quiet = Quiet(2, 10)
        for second, state in enumerate(["one", "two", "two", "three"]):
            quiet.see(state, second)
        assert quiet.due() == 5

    def test_it_does_not_wait_for_ever(self) -> None:
        quiet = Quiet(2, 10)
        for second in range(30):
            quiet.see(second, second)
        assert quiet.due() == 10

    def test_what_was_acted_on_is_no_change(self) -> None:
        quiet = Quiet(2, 10)
        quiet.see("one", 0)
        quiet.act()
        quiet.see("one", 50)
        assert quiet.due() is None
        quiet.see("two", 60)
        assert quiet.due() == 62
        quiet.see("one", 61)  # and back again
        assert quiet.due() is None
        quiet.see("three", 69)
        quiet.see("four", 70.5)
        assert quiet.due() == 72.5


class TestPatience:
    def test_nothing_in_transit(self) -> None:
        patience = Patience(5)
        patience.see({}, 0)
        assert patience.due() is None
        assert patience.passed_over(99) == NONE

    def test_all_acknowledged(self) -> None:
        patience = Patience(5)
        patience.see({OF_A: frozenset({A})}, 0)
        assert patience.due() == 5
        patience.see({OF_A: NONE}, 1)
        due = patience.due()
        assert due is not None
        assert due <= 1

    def test_what_is_acknowledged_is_granted_early_but_once(self) -> None:
        patience = Patience(5)
        patience.see({OF_A: NONE, OF_B: frozenset({B})}, 0)
        assert patience.due() == 1
        patience.act()
        patience.see({OF_B: frozenset({B})}, 1)
        assert patience.due() == 5
        patience.see({OF_B: frozenset({B}), Revocation(Incarnation("c.0", 3), 7): NONE}, 2)
        assert patience.due() == 5

    def test_who_keeps_silent_is_passed_over(self) -> None:
        patience = Patience(5)
        patience.see({OF_A: frozenset({A}), OF_B: NONE}, 10)
        assert patience.passed_over(14.9) == NONE
        assert patience.passed_over(15) == {OF_A}
        assert patience.missing(OF_A) == {A}

    def test_a_later_revocation_does_not_prolong_the_wait_for_an_earlier_one(self) -> None:
        patience = Patience(5)
        patience.see({OF_A: frozenset({A})}, 0)
        patience.see({OF_A: frozenset({A}), LATER: frozenset({A})}, 3)
        assert patience.due() == 5
        assert patience.passed_over(5) == {OF_A}
        patience.act()
        patience.see({LATER: frozenset({A})}, 5)
        assert patience.due() == 8
