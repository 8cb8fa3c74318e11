"""The bounds of lists: they prune, and they leave out nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ringcron.models import EARLIEST, LATEST, PARKED, JobState
from ringcron.store.bounds import Bounds
from ringcron.store.listing import JobFilter, page_queries, reach_of, stretches

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
INSTANTS = st.integers(0, 6999 * 365 * 86400).map(lambda n: EARLIEST + timedelta(seconds=n))


def where(state: JobState, at: datetime) -> datetime:
    """The next_run_at that a row of this state has, if it was or will be due at `at`."""
    if state in (JobState.PAUSED, JobState.DEAD):
        return PARKED
    return at if state is JobState.DUE else min(at, NOW)


@given(
    st.sampled_from(list(JobState)),
    INSTANTS,
    st.none() | st.sampled_from(list(JobState)),
    st.none() | INSTANTS,
    st.none() | INSTANTS,
    st.booleans(),
)
def test_no_row_that_the_filter_lets_through_is_out_of_reach(
    state: JobState,
    at: datetime,
    wanted: JobState | None,
    after: datetime | None,
    before: datetime | None,
    by_time: bool,
) -> None:
    next_run_at = where(state, at)
    shown = next_run_at if state in (JobState.DUE, JobState.CLAIMED) else None
    in_window = (after is None or (shown is not None and shown >= after)) and (
        before is None or (shown is not None and shown < before)
    )
    passes = (wanted is None or wanted is state) and in_window and (not by_time or shown is not None)
    reach = reach_of(JobFilter(state=wanted, due_after=after, due_before=before), by_time=by_time, now=NOW)
    reached = (
        reach is not None
        and (reach.states is None or state in reach.states)
        and reach.bounds.from_at <= next_run_at < reach.bounds.until_at
    )
    assert reached or not passes


@given(INSTANTS, INSTANTS)
def test_stretches_tile_the_bounds(first: datetime, second: datetime) -> None:
    bounds = Bounds(min(first, second), max(first, second))
    parts = list(stretches(bounds, NOW))
    edges = [(part.from_at, part.until_at) for part in parts]
    assert [left[1] for left in edges[:-1]] == [right[0] for right in edges[1:]]
    assert (not edges and first == second) or (edges[0][0], edges[-1][1]) == (bounds.from_at, bounds.until_at)


def queries_of(wanted: JobFilter, *, by_time: bool = False) -> list[dict[str, object]]:
    pages = page_queries(wanted, after=None, by_time=by_time, limit=10, with_payload=False, now=NOW)
    return [page.parameters for page in pages]


def test_states_that_lie_in_few_partitions() -> None:
    (dead,) = queries_of(JobFilter(state=JobState.DEAD))
    assert dead["from_at"] == PARKED
    (done,) = queries_of(JobFilter(state=JobState.DONE))
    assert done["until_at"] == NOW + timedelta(days=1)
    (due,) = queries_of(JobFilter(state=JobState.DUE))
    assert (due["from_at"], due["until_at"], due["late_until_at"]) == (EARLIEST, PARKED, NOW.replace(hour=0))


def test_a_list_that_can_hold_nothing_asks_nothing() -> None:
    assert queries_of(JobFilter(state=JobState.DONE, due_after=NOW)) == []
    assert queries_of(JobFilter(state=JobState.DEAD), by_time=True) == []
    assert queries_of(JobFilter(due_after=NOW, due_before=NOW)) == []


def test_a_list_by_time_looks_at_today_first() -> None:
    first, *later = queries_of(JobFilter(), by_time=True)
    assert first["until_at"] == datetime(2027, 3, 2, tzinfo=UTC)
    assert later[-1]["until_at"] is not None
    assert later[-1]["until_at"] > LATEST  # type: ignore[operator]
