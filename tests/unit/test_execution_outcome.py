"""What of a handler's end can be stored."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ringcron import Fail
from ringcron.handlers import ERROR_LIMIT, RESULT_LIMIT
from ringcron_shard_worker.handler_process.outcome import Ended, clean_text, raised, returned


def storable(text: str | None) -> bool:
    return text is not None and "\0" not in text and len(text) <= ERROR_LIMIT and bool(text.encode())


def caught(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a57_a_hostile_message_is_cleaned_and_cut() -> None:
    error = raised(caught(ValueError("a\0b\ud800c" + "x" * 1_000_000))).error

    assert storable(error)
    assert error is not None
    assert error.startswith("ValueError: a\ufffdb\ufffdcxxx")
    assert "cut, 1000005 characters" in error


def test_an_error_says_type_message_cause_and_place() -> None:
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    text = raised(caught(error)).error

    assert text is not None
    assert text.startswith("ValueError: outer\ncaused by KeyError: 'inner'\n")
    assert "test_execution_outcome.py" in text


def test_an_error_whose_message_cannot_be_made_is_still_an_error() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Hostile: (its message cannot be shown: RuntimeError)" in str(raised(caught(Hostile())).error)


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError(), RecursionError()]
)
def test_whatever_is_raised_is_an_error(error: BaseException) -> None:
    assert type(error).__name__ in str(raised(caught(error)).error)


def test_fail_says_how_it_is_to_be_treated() -> None:
    ended = raised(caught(Fail("later \0", retry_after_seconds=7, dead=True)))

    assert ended == Ended(error="later \ufffd", retry_after_seconds=7, dead=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "5", True, 1e300])
def test_a_back_off_that_is_no_length_of_time_is_not_heard(value: Any) -> None:
    assert raised(caught(Fail("later", retry_after_seconds=value))).retry_after_seconds is None


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        ({"a": [1, 2.5, True, None]}, b'{"a":[1,2.5,true,null]}'),
        ({1: "a"}, b'{"1":"a"}'),
        (float("nan"), b"null"),
        ("a\0b", '"a\ufffdb"'.encode()),
        ({"k\0": ["\0"]}, '{"k\ufffd":["\ufffd"]}'.encode()),
        ("\\u0000", rb'"\\u0000"'),
        ("a\ud800b", '"a\ufffdb"'.encode()),
        (("x", "y"), b'["x","y"]'),
    ],
)
def test_results(value: object, stored: bytes | None) -> None:
    assert returned(value) == Ended(result=stored)


@pytest.mark.parametrize("value", [{1, 2}, object(), 2**70, b"bytes", {"a": {"b": object()}}])
def test_a_result_that_is_no_json_is_an_error_that_says_so(value: object) -> None:
    ended = returned(value)

    assert ended.result is None
    assert str(ended.error).startswith("what the handler returned cannot be written as JSON: ")


def test_a_result_that_holds_itself_is_an_error() -> None:
    loop: list[object] = []
    loop.append(loop)

    assert returned(loop).error is not None


def test_a_large_result_is_replaced_by_a_note() -> None:
    ended = returned("x" * RESULT_LIMIT)

    assert ended.result is not None
    assert len(ended.result) < 200
    assert "left out" in orjson.loads(ended.result)["note"]
    assert returned("x" * (RESULT_LIMIT - 2)).result == b'"' + b"x" * (RESULT_LIMIT - 2) + b'"'


def test_text_is_cut_to_the_limit_exactly() -> None:
    assert clean_text("x" * 100, limit=100) == "x" * 100
    assert len(clean_text("x" * 101, limit=100)) == 100


def test_an_end_survives_the_way_between_processes() -> None:
    ended = Ended(result=b'{"a":1}', error="e", retry_after_seconds=1.5, dead=True, stopped=True, left_behind=True)

    assert Ended.from_message(orjson.loads(orjson.dumps(ended.message()))) == ended
    assert Ended.from_message(Ended().message()) == Ended()
