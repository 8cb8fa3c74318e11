"""Which traceparent headers are understood."""

from __future__ import annotations

import pytest

from ringcron.traceparent import parse_traceparent

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (GOOD, GOOD),
        (f" {GOOD}\t", GOOD),
        (GOOD.replace("-01", "-00"), GOOD.replace("-01", "-00")),
        (GOOD.replace("00-", "cc-", 1), GOOD),
        (GOOD.replace("00-", "cc-", 1) + "-what-will-be", GOOD),
    ],
)
def test_what_is_well_formed_is_kept_in_the_form_of_this_version(text: str, kept: str) -> None:
    assert str(parse_traceparent(text)) == kept


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        GOOD.upper(),
        GOOD[:-1],
        f"{GOOD}-more",
        GOOD.replace("00-", "ff-", 1),
        GOOD.replace("00-", "cc-", 1) + "x",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
    ],
)
def test_anything_else_is_ignored(text: str | None) -> None:
    assert parse_traceparent(text) is None
