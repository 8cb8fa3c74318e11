"""A JSON batch is cut into groups of jobs only where it may be, and reads as the whole would."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron_api import batch_body
from ringcron_api.batch_body import _read_in_groups

TEXTS = st.sampled_from(["", "},{", '"},{"', "}, {", "[{", "]}", "\\", '\\"', "ü"])
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SPACE = st.sampled_from([b"", b" ", b"\n\t"])


@pytest.fixture(autouse=True, scope="module")
def small_groups() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_body, "_GROUP_BYTES", 10)
        yield


@given(st.lists(VALUES, max_size=20), SPACE, SPACE)
async def test_the_groups_are_the_whole(jobs: list[Any], before: bytes, after: bytes) -> None:
    listed = (before + b"," + after).join(orjson.dumps(job) for job in jobs)
    body = before + b'{"jobs"' + after + b":[" + before + listed + after + b"]" + before + b"}" + after
    read = await _read_in_groups(body)
    assert read is None or read == orjson.loads(body)["jobs"]
    if all(isinstance(job, dict) and not job for job in jobs):
        assert read == jobs


@pytest.mark.parametrize(
    "body",
    [
        b'{"jobs":[{},]}',
        b'{"jobs":[,{}]}',
        b'{"jobs":[{},,{}]}',
        b'{"jobs":[{} {}]}',
        b'{"jobs":[{}]}]}',
        b'{"jobs":[{}],"jobs":[{}]}',
        b'{"jobs":[{}],"more":[{}]}',
        b'{"job":[{}]}',
        b'[{"jobs":[]}]',
        b'{"jobs":[{"a":"\\u0000"}]}',
        b'{"jobs":[{"a":1e999}]}',
        b'{"jobs":[{"a":18446744073709551616}]}',
        b'{"jobs":[' + b"[" * 63 + b"]" * 63 + b"]}",
        b"",
    ],
)
async def test_what_is_wrong_or_else_is_left_to_the_long_way(body: bytes) -> None:
    assert await _read_in_groups(body) is None
