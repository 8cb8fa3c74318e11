"""Statements with their bounds in the text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ringcron.store.bounds import UNBOUNDED, near
from ringcron.store.pinned import PINNED, pinned
from ringcron_sql import query

NOW = datetime(2026, 11, 29, 12, 34, 56, tzinfo=UTC)
SPAN = {"first_at": NOW, "last_at": NOW + timedelta(days=1)}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("claim", {"from_at": UNBOUNDED.from_at, "until_at": UNBOUNDED.until_at, "solo": False}),
        (
            "peek",
            {
                "from_at": UNBOUNDED.from_at,
                "until_at": UNBOUNDED.until_at,
                "arcs_from_at": near(NOW).from_at,
                "arcs_until_at": near(NOW).until_at,
            },
        ),
        ("complete_runs", SPAN),
        ("renew_leases", SPAN),
        ("settle_claims", SPAN),
        ("read_claimed", SPAN),
    ],
)
def test_no_bound_is_left_a_parameter(name: str, parameters: dict[str, datetime | bool]) -> None:
    text = pinned(name, parameters)

    assert not any(f"%({key})s" in text for key in PINNED)
    for key, value in parameters.items():
        said = str(value).lower() if isinstance(value, bool) else f"timestamptz '{value.isoformat()}'"
        assert text.count(said) >= query(name).count(f"%({key})s")


def test_instants_of_other_zones_say_the_same() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5)))

    assert pinned("peek", {"from_at": elsewhere, "until_at": NOW}) == pinned("peek", {"from_at": NOW, "until_at": NOW})


def test_what_is_not_given_stays_a_parameter() -> None:
    assert pinned("find_landed", {"ids": [], "owner": "w"}) == query("find_landed")
