"""Many bodies are read as each is read by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.store.creating import Creation, OnConflict
from ringcron_api.creation import read_creation
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.many_creations import CreationReader
from ringcron_api.problems import Problem

NOW = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)
SCHEDULES = ["0 9 * * *", {"cron": "0 9 * * *"}, {"every": "PT1H"}, {"every": "PT1H", "maxRuns": 2.0}, "0 0 30 2 *", 7]
FIELDS: dict[str, list[Any]] = {
    "runAt": ["2027-03-01T13:00:00Z", "2020-01-01T00:00:00+01:00", "2027-03-01T13:00:00", "", None, 7],
    "schedule": [*SCHEDULES, None],
    "payload": [None, 0, {"a": [1]}, "x" * 262_143],
    "key": ["k", "l" * 512, "", "k" * 513, None, 7],
    "onConflict": ["error", "keep", "replace", "other", None],
    "handler": ["http", "", None],
    "tags": [["a", "b", "a"], [], "a"],
    "retry": [{"maxAttempts": 3}, {"maxAttempts": 3.0}, {"maxAttempts": 0}, {"x": 1}],
    "jitter": ["PT5M", "P2D"],
    "unknown": [1],
}
BODIES = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()}
) | st.sampled_from([None, 7, [], "x"])


def as_read(read: Any, document: Any) -> Any:
    """What became of a body: the job but for its id, or the faults."""
    try:
        creation: Creation = read(document)
    except ValidationFailed as failed:
        return [fault.wire() for fault in failed.faults]
    except Problem as problem:
        return (problem.code, problem.detail)
    new = creation.new
    definition = new.definition
    return (
        {name: getattr(definition, name) for name in definition.__slots__ if name != "payload"},
        orjson.loads(orjson.dumps(definition.payload)),
        new.scheduled_for,
        creation.on_conflict,
        None
        if creation.on_conflict is OnConflict.REPLACE
        else (new.created_at, new.next_run_at == creation.next_run_at),
    )


@given(st.lists(BODIES, max_size=30))
def test_each_is_read_as_by_itself(bodies: list[Any]) -> None:
    reader = CreationReader(NOW)
    for body in bodies:
        alone = as_read(lambda document: read_creation(document, [], NOW), body)
        assert as_read(lambda document: reader.read(document, []), body) == alone


@pytest.mark.parametrize(
    ("sound", "not_sound"),
    [
        ({"runAt": "2027-03-01T13:00:00Z", "key": "k", "onConflict": "keep"}, {"key": None}),
        ({"runAt": "2027-03-01T13:00:00Z"}, {"runAt": None}),
        ({"schedule": "0 9 * * *"}, {"runAt": "2027-03-01T13:00:00Z"}),
        ({"runAt": "2027-03-01T13:00:00Z", "payload": 1}, {"payload": "x" * 262_143}),
    ],
)
def test_what_was_sound_of_one_body_need_not_be_of_another(sound: dict[str, Any], not_sound: dict[str, Any]) -> None:
    reader = CreationReader(NOW)
    reader.read(sound, [])
    with pytest.raises((ValidationFailed, Problem)):
        reader.read({**sound, **not_sound}, [])


def test_ids_differ_and_what_is_common_is_shared() -> None:
    reader = CreationReader(NOW)
    read = [reader.read({"runAt": "2027-03-01T13:00:00Z", "payload": n}, []) for n in range(100)]
    assert len({creation.id for creation in read}) == 100
    assert len({id(creation.common) for creation in read}) == 1


def test_replacements_have_instants_of_their_own() -> None:
    reader = CreationReader(NOW)
    body = {"runAt": "2027-03-01T13:00:00Z", "key": "k", "onConflict": "replace"}
    instants = [reader.read(body, []).created_at for _ in range(50)]
    assert len(set(instants)) == 50
    assert max(instants) < NOW


def test_faults_that_the_reader_of_json_found_are_not_forgotten() -> None:
    reader = CreationReader(NOW)
    body = {"runAt": "2027-03-01T13:00:00Z"}
    reader.read(body, [])
    with pytest.raises(ValidationFailed):
        reader.read(body, [Fault(pointer="/payload", code="nul-character", detail="x")])
