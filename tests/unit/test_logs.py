"""The log: its form, and that no password gets into it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog

from ringcron import logs
from ringcron.redaction import redact

URL = "postgresql://ringcron:s3cret@db:5432/ringcron"


class StandingClock:
    def elapsed(self) -> float:
        return 0.0

    def wall(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def configure(output: io.StringIO, form: logs.Format = "json", level: logs.Level = "info") -> None:
    logs.configure(program="worker", name="w-1", form=form, level=level, clock=StandingClock(), stream=output)


def lines(output: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_line_says_when_which_program_what_and_its_fields(output: io.StringIO) -> None:
    configure(output)
    structlog.get_logger("x").info("claimed", jobs=3)
    (line,) = lines(output)
    assert line["at"] == "2026-01-02T03:04:05.678Z"
    assert (line["program"], line["name"], line["level"], line["event"]) == ("worker", "w-1", "info", "claimed")
    assert line["jobs"] == 3


def test_what_libraries_log_comes_out_in_the_same_form(output: io.StringIO) -> None:
    configure(output)
    logging.getLogger("library").warning("lost %s", URL)
    logging.getLogger("kazoo.client").info("chatter")
    (line,) = lines(output)
    assert (line["event"], line["level"], line["logger"]) == (
        "lost postgresql://ringcron:***@db:5432/ringcron",
        "warning",
        "library",
    )
    assert line["program"] == "worker"


def test_less_than_the_level_is_not_logged(output: io.StringIO) -> None:
    configure(output, level="warning")
    structlog.get_logger("x").info("small talk")
    logging.getLogger("library").info("small talk")
    assert output.getvalue() == ""


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_password_gets_into_the_log_not_even_by_a_traceback(output: io.StringIO, form: logs.Format) -> None:
    configure(output, form=form)
    log = structlog.get_logger("x")
    log.info("connecting", url=URL, nested={"also": [URL]}, conninfo="host=db password=s3cret user=me")
    try:
        raise OSError(f"cannot reach {URL}")
    except OSError:
        log.exception("failed")
    assert "s3cret" not in output.getvalue()
    assert "postgresql://ringcron:***@db" in output.getvalue()
    assert "cannot reach" in output.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (URL, "postgresql://ringcron:***@db:5432/ringcron"),
        ("postgresql://:s3cret@db/x", "postgresql://:***@db/x"),
        ("host=db password='s3 cret' user=a", "host=db password=*** user=a"),
        ("postgresql://db/x?password=s3cret&user=a", "postgresql://db/x?password=***&user=a"),
        ("http://127.0.0.1:8080/jobs?at=me@home", "http://127.0.0.1:8080/jobs?at=me@home"),
        ("12:30 mail a@b", "12:30 mail a@b"),
        (f"Bearer rc_a1b2c3d4e5_{'z' * 43}", "Bearer rc_a1b2c3d4e5_***"),
        (f"{{'key': 'rc_a1b2c3d4e5_{'z' * 43}'}}", "{'key': 'rc_a1b2c3d4e5_***'}"),
        ("rc_a1b2c3d4e5 and rc_x_y", "rc_a1b2c3d4e5 and rc_x_y"),
    ],
)
def test_passwords_are_found_and_nothing_else(text: str, shown: str) -> None:
    assert redact(text) == shown
