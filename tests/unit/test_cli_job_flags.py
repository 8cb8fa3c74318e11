"""What the flags of `ringcron job` mean, where the API is found, and how a refusal names a flag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import typer

from ringcron.cli.api_address import DEFAULT_URL, key_of, url_of
from ringcron.cli.api_errors import error_text, flag_of
from ringcron.cli.database_address import database_settings
from ringcron.cli.job_schedule import one_of, schedule_from
from ringcron.cli.readings import duration, payload
from ringcron.client import Cron, Every, FieldFault
from ringcron.client.errors import api_error
from ringcron.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3s", 3),
        ("0s", 0),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("0.000001s", 1e-6),
        ("15m", 900),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("PT15M", 900),
        ("P1DT0.25S", 86_400.25),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "3", "s", "3 s", "-3s", "3S", "1y", "3s!", "1.1234567s", "P1M", "٣s", "9" * 30 + "d"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration(text)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "{'a': 1}", "hello", ""])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        payload(text)


def test_numbers_of_a_payload_are_exact() -> None:
    assert payload('{"a": 18446744073709551616}') == {"a": 2**64}


def test_flags_become_a_schedule() -> None:
    nothing = dict.fromkeys(("cron", "timezone", "every", "anchor", "start_at", "end_at", "max_runs"))
    assert schedule_from(**nothing) is None  # type: ignore[arg-type]
    assert schedule_from(**{**nothing, "cron": "@daily"}) == Cron("@daily")  # type: ignore[arg-type]
    minute = timedelta(minutes=1)
    assert schedule_from(**{**nothing, "every": minute, "max_runs": 3}) == Every(minute, max_runs=3)  # type: ignore[arg-type]
    assert schedule_from(**{**nothing, "every": timedelta(0)}) == Every(timedelta(0))  # type: ignore[arg-type]


def test_exactly_one_of_several_flags() -> None:
    one_of(a=None, b=0)
    for given in ({"a": None, "b": None}, {"a": 1, "b": 2}):
        with pytest.raises(typer.BadParameter, match="exactly one of --a and --b"):
            one_of(**given)


@pytest.mark.parametrize(
    ("pointer", "flag"),
    [
        ("/retry/maxAttempts", "--max-attempts"),
        ("/schedule/cron", "--cron"),
        ("/schedule/startAt", "--start-at"),
        ("/schedule", "the schedule"),
        ("/runAt", "--at"),
        ("/tags/3", "--tag"),
        ("/onConflict", "--on-conflict"),
        ("/payload", "--payload"),
        ("/payload/a/0", "--payload /a/0"),
        ("/perSecond", "--per-second"),
        ("", "the job"),
        ("/~1odd", "/~1odd"),
    ],
)
def test_a_fault_names_the_flag(pointer: str, flag: str) -> None:
    assert flag_of(FieldFault(pointer=pointer, code="invalid", detail="must be")) == flag


def test_a_refusal_cannot_rewrite_a_terminal() -> None:
    assert error_text(api_error(404, {"code": "x", "detail": "no \x1b[2J\nhere"})) == "no \\x1b[2J\nhere"


def test_an_unforeseen_error_can_be_found_in_the_log() -> None:
    problem = {"status": 500, "code": "internal-error", "detail": "see the log", "requestId": "r1"}
    assert error_text(api_error(500, problem)) == "see the log (r1)"


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        ({"apiUrl": "http://127.0.0.1:1234"}, "http://127.0.0.1:1234"),
        ({"apiUrl": "http://elsewhere.invalid:1234"}, DEFAULT_URL),  # an API key would follow
        ({"apiUrl": 5}, DEFAULT_URL),
        ({}, DEFAULT_URL),
        ([], DEFAULT_URL),
        ("no json", DEFAULT_URL),
    ],
    ids=str,
)
def test_the_api_of_a_folder(tmp_path: Path, contents: object, found: str) -> None:
    up_file = tmp_path / "up.json"
    up_file.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    assert url_of({}, up_file) == found
    assert url_of({"RINGCRON_API_URL": "http://x"}, up_file) == "http://x"
    assert url_of({}, tmp_path / "none") == DEFAULT_URL


def test_a_folder_of_somebody_else_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    up_file = tmp_path / "up.json"
    up_file.write_text('{"apiUrl": "http://127.0.0.1:1234"}')
    monkeypatch.setattr("os.geteuid", lambda: up_file.stat().st_uid + 1)
    assert url_of({}, up_file) == DEFAULT_URL


@pytest.mark.parametrize("host", ["127.0.0.1", "elsewhere.invalid"])
def test_the_database_of_a_folder(tmp_path: Path, host: str) -> None:
    up_file = tmp_path / "up.json"
    up_file.write_text(json.dumps({"databaseUrl": f"postgresql://of:folder@{host}:5432/r"}))
    if host == "127.0.0.1":
        assert database_settings({}, None, up_file).database_url == "postgresql://of:folder@127.0.0.1:5432/r"
    else:
        with pytest.raises(ConfigError, match=r"RINGCRON_DATABASE_URL is not set.* databaseUrl in <data-dir>"):
            database_settings({}, None, up_file)
    for environment, flag, found in (
        ({"DATABASE_URL": "postgresql://v/r"}, None, "postgresql://v/r"),
        ({"DATABASE_URL": "postgresql://v/r"}, "postgresql://f/r", "postgresql://f/r"),
    ):
        assert database_settings(environment, flag, up_file).database_url == found
    with pytest.raises(ConfigError, match="DATABASE_URL_FILE: /none cannot be read"):
        database_settings({"DATABASE_URL_FILE": "/none"}, None, up_file)


def test_the_key_comes_from_its_variable_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("rc_a_b\n")
    by_file: Mapping[str, str] = {"RINGCRON_API_KEY_FILE": str(file)}
    assert key_of({}) is None
    assert key_of({"RINGCRON_API_KEY": ""}) is None
    assert key_of(by_file) == "rc_a_b"
    assert key_of({**by_file, "RINGCRON_API_KEY": "rc_c_d"}) == "rc_c_d"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        key_of({"RINGCRON_API_KEY_FILE": str(tmp_path / "none")})
