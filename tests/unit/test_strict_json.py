"""JSON as it can be held: faults.md H4 to H6, cases.md A58."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron_api.strict_json import MAX_DEPTH, MalformedJson, read_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4)
    ),
    max_leaves=20,
)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(JSON)
def test_what_can_be_held_is_read_as_it_is(value: Any) -> None:
    body = orjson.dumps(value)
    read, faults = read_json(body)
    assert faults == []
    assert read == orjson.loads(body)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedJson):
        orjson.dumps(read_json(body)[0])


@pytest.mark.parametrize(
    ("body", "line", "column"),
    [
        (b"", 1, 1),
        (b'{"a": 1,}', 1, 9),
        (b'{"a": NaN}', 1, 7),
        (b'{\n"a": 1,\n"b": -Infinity}', 3, 6),
        (b'{"a": Infinity}', 1, 7),
        (b"\xff", 1, 1),
        (b'{"a": "\xed\xa0\x80"}', 1, 8),
        (b"\xef\xbb\xbf{}", 1, 1),
        (nested(MAX_DEPTH + 1), 1, MAX_DEPTH + 1),
        (nested(5000), 1, MAX_DEPTH + 1),
        (b"[" * 200_000, 1, MAX_DEPTH + 1),
        (b'"' + b'\\"' * 200_000, 1, 1),
        (b"1 2", 1, 3),
        (b'{"a": "\x00"}', 1, 8),
        (b'{"a": 01}', 1, 8),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(body: bytes, line: int, column: int) -> None:
    with pytest.raises(MalformedJson) as refusal:
        read_json(body)
    assert (refusal.value.line, refusal.value.column) == (line, column)


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (b'{"a": "\\u0000"}', {"/a": "nul-character"}),
        (b'{"a": ["x", "\\ud800"]}', {"/a/1": "lone-surrogate"}),
        (b'{"a": 1e999, "b": -1e999}', {"/a": "number-too-large", "/b": "number-too-large"}),
        (b'{"a": 18446744073709551616}', {"/a": "integer-too-large"}),
        (b'{"a": -9223372036854775809}', {"/a": "integer-too-large"}),
        (b'{"a": ' + b"7" * 5000 + b"}", {"/a": "integer-too-large"}),
        (b'{"x\\u0000": 1}', {"/x\0": "nul-character"}),
        (b'{"\\udfff": {"b": 1}}', {"/\ufffd": "lone-surrogate"}),
        (b'{"a/b": {"c~d": "\\u0000"}}', {"/a~1b/c~0d": "nul-character"}),
        (b'["\\ud800", 1e999, "\\u0000"]', {"/0": "lone-surrogate", "/1": "number-too-large", "/2": "nul-character"}),
    ],
)
def test_what_cannot_be_held_is_a_fault_with_its_pointer(body: bytes, faults: dict[str, str]) -> None:
    value, found = read_json(body)
    assert {fault.pointer: fault.code for fault in found} == faults
    orjson.dumps([value, [fault.wire() for fault in found]])  # neither can spoil an answer


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"18446744073709551615", 18446744073709551615),
        (b"-9223372036854775808", -9223372036854775808),
        (b"[1e19, 1e300]", [1e19, 1e300]),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'{"NaN": "Infinity ["}', {"NaN": "Infinity ["}),
        (b" 1e-999", 0.0),
        (nested(2), [[]]),
    ],
)
def test_the_bounds_themselves_are_accepted(body: bytes, value: Any) -> None:
    assert read_json(body) == (value, [])


def test_the_deepest_that_is_accepted() -> None:
    assert read_json(nested(MAX_DEPTH))[1] == []
