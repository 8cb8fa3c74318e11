"""Which claim comes next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringcron.models import Arc, Holding, Slice
from ringcron.ring import WHOLE_RING
from ringcron.store.answers import Head, Peek
from ringcron_shard_worker.turns import (
    TurnKind,
    due_turns,
    fair_turn,
    next_wake,
    own_arcs,
    owns_everything,
)

LOW, HIGH = Arc(lo=0, hi=99), Arc(lo=2000, hi=2099)


def head(wait: float, arc: Arc = LOW, handler: str = "a") -> Head:
    return Head(handler=handler, arc=arc, wait_seconds=wait)


def peek(*heads: Head, ring: tuple[Head, ...] = (), solo: float | None = None) -> Peek:
    return Peek(
        heads=tuple(sorted(heads, key=lambda each: each.wait_seconds)),
        ring=ring,
        solo_wait_seconds=solo,
        lapse_seconds=None,
        answered_at=0.0,
    )


def turns(seen: Peek, age: float = 0.0, *, proven: bool = True, solo_free: bool = True) -> list[tuple[TurnKind, Arc]]:
    found = due_turns(
        seen, age_seconds=age, proven=proven, help_after_seconds=0.25, solo_free=solo_free, handlers=("a", "b")
    )
    return [(turn.kind, turn.arc) for turn in found]


def test_the_arc_with_the_oldest_due_row_comes_first() -> None:
    assert turns(peek(head(-1, LOW), head(-5, HIGH))) == [(TurnKind.OWN, HIGH), (TurnKind.OWN, LOW)]


def test_nothing_is_claimed_before_it_is_due_and_then_without_another_peek() -> None:
    seen = peek(head(0.4))
    assert turns(seen, 0.3) == []
    assert turns(seen, 0.4) == [(TurnKind.OWN, LOW)]


def test_one_claim_serves_all_due_handlers_of_an_arc() -> None:
    found = due_turns(
        peek(head(-1, handler="a"), head(-2, handler="b"), head(5, handler="c")),
        age_seconds=0,
        proven=True,
        help_after_seconds=0.25,
        solo_free=True,
        handlers=("a", "b", "c"),
    )
    assert [turn.handlers for turn in found] == [("b", "a")]


def test_help_waits_until_the_owner_had_its_time() -> None:
    assert turns(peek(ring=(head(-0.2, WHOLE_RING),))) == []
    assert turns(peek(ring=(head(-0.3, WHOLE_RING),))) == [(TurnKind.HELP, WHOLE_RING)]


def test_an_unproven_owner_claims_with_the_helpers_delay() -> None:
    assert turns(peek(head(-0.2)), proven=False) == []
    assert turns(peek(head(-0.3)), proven=False) == [(TurnKind.OWN, LOW)]


def test_an_unproven_owner_does_not_wait_as_long_as_a_helper_who_is_to_wait_for_long() -> None:
    found = due_turns(
        peek(head(-0.4)), age_seconds=0, proven=False, help_after_seconds=60, solo_free=True, handlers=("a",)
    )
    assert [turn.kind for turn in found] == [TurnKind.OWN]


def test_one_quarantined_job_at_a_time() -> None:
    assert turns(peek(solo=-1.0)) == [(TurnKind.SOLO, WHOLE_RING)]
    assert turns(peek(solo=-1.0), solo_free=False) == []


def test_the_fairness_turn_is_for_rows_overdue_by_two_leases() -> None:
    assert fair_turn(("a",), 15.0).overdue_seconds == 30.0


def test_arcs_of_handlers_that_this_worker_lacks_are_left_out() -> None:
    holding = Holding(epoch=1, proven=True, slices=(Slice(handlers=("a", "x"), arcs=(LOW, HIGH)),))
    assert own_arcs(holding, ("a", "b")) == (("a", LOW), ("a", HIGH))
    assert not owns_everything(holding, ("a",))
    alone = Holding(epoch=0, proven=True, slices=(Slice(handlers=("a",), arcs=(WHOLE_RING,)),))
    assert owns_everything(alone, ("a",))


waits = st.floats(-5, 5)


@given(
    own=st.lists(waits, max_size=4),
    ring=st.lists(waits, max_size=2),
    solo=st.none() | waits,
    proven=st.booleans(),
    solo_free=st.booleans(),
    age=st.floats(0, 1),
)
def test_no_sleep_outlasts_the_moment_at_which_something_becomes_due(
    own: list[float], ring: list[float], solo: float | None, proven: bool, solo_free: bool, age: float
) -> None:
    seen = peek(*map(head, own), ring=tuple(head(wait, WHOLE_RING) for wait in sorted(ring)), solo=solo)
    sleep = next_wake(
        seen, age_seconds=age, proven=proven, help_after_seconds=0.25, solo_free=solo_free, poll_seconds=1.0
    )
    assert 0 <= sleep <= 1.0
    if sleep < 1.0:
        assert turns(seen, age + sleep + 1e-6, proven=proven, solo_free=solo_free)
    if sleep > 0:
        assert not turns(seen, age + sleep - 1e-6, proven=proven, solo_free=solo_free)
