"""Five hundred expressions whose normal form and next ticks never change, whatever croniter and tzdata do.

`RINGCRON_WRITE_GOLDEN=1` adds what is missing and writes the file anew, after each line has been judged by brute force.
A line that differs after an upgrade is a change of meaning for jobs that are stored.
"""

from __future__ import annotations

import json
import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringcron.instants import format_instant
from ringcron.schedule import parse_schedule
from tests.support.brute_force import MINUTE, Reference, local_minutes, utc
from tests.support.random_cron import random_expression

GOLDEN = Path(__file__).with_name("cron-golden.jsonl")
ZONES = ("UTC", "UTC", "UTC", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham")
CHANGES = (utc(2024, 3, 10), utc(2024, 3, 31), utc(2024, 4, 6), utc(2024, 10, 5), utc(2024, 10, 27), utc(2024, 11, 3))
WRITTEN = (
    "@yearly @annually @monthly @weekly @daily @midnight @hourly".split(),  # noqa: SIM905
    ["* * * * *", "*/5 * * * *", "0 * * * *", "59/15 * * * *", "59/1 * * * *", "0 9 * * mon-fri", "0 0 29 2 *"],
    ["0 16 */2 * SAT", "0 13 8 1,4,7,10 WED", "0 0 1-31 * 1", "0 9 15W * *", "0 0 L * *", "0 0 * * L5", "0 0 * * 5#3"],
    [
        "0 22-2 * * *",
        "0 23-3/2 * * *",
        "0 0 * * FRI-MON",
        "0 0 1 NOV-FEB/2 *",
        "0 0 * * 0-7/2",
        "5,10-20/3,*/40 * * * *",
    ],
)


def _line(cron: str, timezone: str, after: datetime) -> dict[str, Any]:
    schedule = parse_schedule({"cron": cron, "timezone": timezone})
    ticks = [format_instant(tick) for tick in schedule.upcoming(after, 3)]
    normal = schedule.document["cron"]
    return {"cron": cron, "timezone": timezone, "after": format_instant(after), "normal": normal, "ticks": ticks}


def _new_lines() -> list[dict[str, Any]]:
    draw = random.Random("golden")
    crons = [cron for crons in WRITTEN for cron in crons]
    crons += [random_expression(draw) for _ in range(500 - len(crons))]
    return [_line(cron, draw.choice(ZONES), draw.choice(CHANGES)) for cron in crons]


def _judge(line: dict[str, Any]) -> None:
    """The ticks of a line that lie within forty days are what brute force says."""
    after = datetime.fromisoformat(line["after"])
    span = local_minutes(line["timezone"], after + MINUTE, 40 * 1440)
    expected = [format_instant(tick) for tick in Reference(line["normal"]).ticks(span)[:3]]
    near = [tick for tick in line["ticks"] if datetime.fromisoformat(tick) <= after + timedelta(days=40)]
    assert near == expected, line


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


@pytest.mark.skipif("RINGCRON_WRITE_GOLDEN" not in os.environ, reason="writes the golden file")
@pytest.mark.timeout(600)
def test_write() -> None:
    lines = _new_lines()
    for line in lines:
        _judge(line)
    GOLDEN.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_golden() -> None:
    lines = _lines()
    assert len(lines) == 500
    differing = [
        line for line in lines if _line(line["cron"], line["timezone"], datetime.fromisoformat(line["after"])) != line
    ]
    assert not differing


def test_the_normal_form_means_the_same() -> None:
    for line in _lines():
        again = _line(line["normal"], line["timezone"], datetime.fromisoformat(line["after"]))
        assert again == {**line, "cron": line["normal"]}
