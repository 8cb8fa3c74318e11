"""Which traceparent and tracestate headers are understood."""

from __future__ import annotations

import pytest

from ringcron.traceparent import CallTrace, call_trace, parse_traceparent, parse_tracestate

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


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (["a=1", "b=2"], "a=1,b=2"),  # of several headers, in their order
        ([" a=1 ,\t, b= 2"], "a=1,b= 2"),
        (["1tenant@sys=x:y;z", "a-_*/9=~!"], "1tenant@sys=x:y;z,a-_*/9=~!"),
        (["a=" + "x" * 256], "a=" + "x" * 256),
        (["a=" + "x" * 250 + ",b=" + "x" * 257], None),
        ([",".join(f"k{n}=v" for n in range(32))], ",".join(f"k{n}=v" for n in range(32))),
        ([",".join(f"k{n}=v" for n in range(33))], None),
        (["a=" + "x" * 255 + ",b=" + "x" * 255], None),  # 515 characters
        *(
            ([text], None)
            for text in ("", " , ", "a", "A=1", "a=", "a=1,a=2", "a=b=c", "1a=1", "a@=1", "a=é", "a=1,b", "a =1")
        ),
        ([], None),
    ],
)
def test_a_tracestate_is_kept_whole_or_not_at_all(texts: list[str], kept: str | None) -> None:
    assert parse_tracestate(texts) == kept


def test_there_is_no_tracestate_without_a_traceparent() -> None:
    assert call_trace(GOOD, ["a=1"]) == CallTrace(GOOD, "a=1")
    assert call_trace(GOOD, ["A"]) == CallTrace(GOOD, None)
    assert call_trace("nonsense", ["a=1"]) is None
