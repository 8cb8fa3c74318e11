"""The token bucket: its bound, and what it says to those who come too early."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringcron_api.rates import TokenBucket


def test_it_begins_full_and_fills_at_its_rate() -> None:
    bucket = TokenBucket(2.0, 3, 100.0)
    assert [bucket.take(100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(100.25) == 0.25
    assert bucket.take(100.5) == 0.0
    assert bucket.take(100.5) == 0.5
    assert [bucket.take(1000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


@given(
    st.sampled_from([0.001, 0.5, 1.0, 3.0, 1000.0]),
    st.integers(1, 20),
    st.lists(st.sampled_from([0.0, 0.001, 0.1, 1.0, 60.0]), max_size=200),
)
def test_over_any_stretch_it_lets_burst_and_rate_through_and_no_more(
    rate: float, burst: int, pauses: list[float]
) -> None:
    bucket, now = TokenBucket(rate, burst, 0.0), 0.0
    passed: list[float] = []
    for pause in pauses:
        now += pause
        wait_seconds = bucket.take(now)
        if wait_seconds == 0.0:
            passed.append(now)
        else:
            assert 0.0 < wait_seconds <= 1.0 / rate
    for first, begin in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - begin) * rate + 1e-6
