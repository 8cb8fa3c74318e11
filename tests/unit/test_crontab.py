"""Crontab files become jobs, line for line, as cronie and Debian's cron read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ringcron.cli import app
from ringcron.crontab import CrontabFile, parse_crontab, split_stdin
from ringcron.errors import ScheduleError
from ringcron.schedule import parse_schedule

FOLDER = Path(__file__).with_name("crontabs")


def read(name: str, *, system: bool = True, **changes: Any) -> CrontabFile:
    text = (FOLDER / name).read_bytes().decode()
    arguments: dict[str, Any] = {"file_name": name, "system": system, "handler": "command", "timezone": "Europe/Madrid"}
    return parse_crontab(text, **{**arguments, **changes})


def personal() -> dict[int, dict[str, Any]]:
    crontab = read("personal", system=False)
    return dict(zip(crontab.lines, crontab.jobs, strict=True))


def test_a_system_crontab() -> None:
    crontab = read("stat-collect")
    assert crontab.refused == []
    assert crontab.lines == [5, 6]
    first, second = crontab.jobs
    assert first["handler"] == "command"
    assert first["schedule"] == {"cron": "5-55/10 * * * *", "timezone": "Europe/Madrid"}
    assert first["payload"] == {
        "shell": "command -v stat-collect > /dev/null && stat-collect 1 1",
        "env": {"PATH": "/opt/stat/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    }
    assert first["tags"] == ["crontab:stat-collect", "user:root"]
    assert first["onConflict"] == "keep"
    assert first["retry"] == {"maxAttempts": 1}
    assert first["name"].startswith("stat-collect: command -v")
    assert second["schedule"]["cron"] == "59 23 * * *"
    assert any("do not switch users" in note for note in crontab.notes)


def test_reboot_is_refused_with_its_line_and_why() -> None:
    crontab = read("log-summary")
    [refused] = crontab.refused
    assert refused.number == 5
    assert refused.text.startswith("@reboot")
    assert "no boot" in refused.why
    [job] = crontab.jobs
    assert job["payload"]["env"]["MAILTO"] == "root"
    assert job["tags"] == ["crontab:log-summary", "user:logsum"]


def test_an_escaped_percent_is_a_percent() -> None:
    [job] = read("raid-check").jobs
    assert "$(date +%d) -le 7" in job["payload"]["shell"]
    assert "stdin" not in job["payload"]


def test_assignments_hold_below_their_line() -> None:
    jobs = personal()
    expected = {
        "SHELL": "/bin/bash",
        "MAILTO": "ops@example.org, night@example.org",
        "GREETING": "  hello  ",
        "EMPTY": "",
        "QUOTED NAME": "value with blanks",
    }
    assert jobs[7]["payload"]["env"] == expected
    assert jobs[24]["payload"]["env"] == {**expected, "TZ": "Asia/Tokyo"}


def test_names_blanks_and_leading_zeros() -> None:
    jobs = personal()
    assert jobs[7]["schedule"]["cron"] == "@daily"
    assert jobs[7]["payload"]["shell"] == "$HOME/bin/backup --all"
    assert jobs[8]["schedule"]["cron"] == "09,39 * * * *"


def test_percent_begins_the_standard_input() -> None:
    payload = personal()[9]["payload"]
    assert payload["shell"] == 'mail -s "Stand-up at 100%" team'
    assert payload["stdin"] == "Good morning,\n\nit is nine.\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo a", ("echo a", None)),
        ("cat%one%two", ("cat", "one\ntwo\n")),
        ("cat%one%", ("cat", "one\n")),
        ("cat%", ("cat", "")),
        (r"date +\%d", ("date +%d", None)),
        (r"echo \\%in", ("echo \\\\", "in\n")),  # the first backslash covers the second
        (r"cat%50\% off", ("cat", "50% off\n")),
        ("echo \\", ("echo \\", None)),
    ],
)
def test_split_stdin(command: str, expected: tuple[str, str | None]) -> None:
    assert split_stdin(command) == expected


def test_cron_tz_moves_the_lines_below_it_and_tz_does_not() -> None:
    crontab = read("personal", system=False)
    jobs = personal()
    assert jobs[9]["schedule"]["timezone"] == "Europe/Madrid"
    assert jobs[11]["schedule"] == {"cron": "30 6 * * *", "timezone": "Asia/Kolkata"}
    assert jobs[24]["schedule"]["timezone"] == "UTC"
    assert "CRON_TZ" not in jobs[24]["payload"]["env"]
    assert any(note.startswith("TZ is given to the commands") for note in crontab.notes)


def test_every_refused_line_has_its_number_and_why() -> None:
    refused = {line.number: line.why for line in read("personal", system=False).refused}
    assert list(refused) == [12, 13, 18, 19, 20, 21, 22, 25, 26]
    assert "did you mean Asia/Calcutta" in refused[12]
    assert "below a CRON_TZ that is not known" in refused[13]
    assert "write `0 * * * *`" in refused[18]
    assert "Quartz" in refused[19]
    assert "and then a command" in refused[20]
    assert "and then a command" in refused[21]
    assert "not closed" in refused[22]
    assert "random" in refused[25]
    assert "never has a tick" in refused[26]


def test_a_leading_dash_is_dropped() -> None:
    assert personal()[15]["schedule"]["cron"] == "*/5 * * * *"


def test_carriage_returns_and_missing_users() -> None:
    crontab = read("mixed-ends")
    assert [job["payload"]["shell"] for job in crontab.jobs] == [
        '/usr/sbin/weekly --with "two words"',
        "cd / && run-parts --report /etc/cron.hourly",
    ]
    assert [line.number for line in crontab.refused] == [4, 5]
    assert "names a user before the command" in crontab.refused[0].why
    assert "no command after the user" in crontab.refused[1].why


def test_a_system_crontab_read_as_a_personal_one_is_noted() -> None:
    assert any("--system" in note for note in read("stat-collect", system=False).notes)


def test_keys_are_stable_and_all_different() -> None:
    again = read("personal", system=False)
    keys = [job["key"] for job in personal().values()]
    assert [job["key"] for job in again.jobs] == keys
    assert len(set(keys)) == len(keys)  # lines 16 and 17 are equal: their count tells them apart
    assert all(key.startswith("crontab:personal:") and len(key) <= 512 for key in keys)


def test_what_a_key_depends_on() -> None:
    def key(line: str, *, name: str = "file", system: bool = False, timezone: str = "UTC") -> str:
        crontab = parse_crontab(line, file_name=name, system=system, handler="command", timezone=timezone)
        key = crontab.jobs[-1]["key"]
        assert isinstance(key, str)
        return key

    base = key("0 5 * * * a b")
    assert key("A=1\n# moved down\n\n0  5 * * *   a b") == base
    changed = [
        key("0 6 * * * a b"),
        key("0 5 * * * a c"),
        key("0 5 * * * a b", name="other"),
        key("0 5 * * * a b", timezone="Asia/Tokyo"),
        key("0 5 * * * root a b", system=True),
        key("0 5 * * * a b\n0 5 * * * a b"),
    ]
    assert len({base, *changed}) == 7
    assert base == "crontab:file:c5a2161692922a37905fa233be56e47c"


def test_text_that_is_not_utf_8_is_refused_alone() -> None:
    text = b"0 5 * * * caf\xe9\n0 6 * * * tea\n".decode("utf-8", "surrogateescape")
    crontab = parse_crontab(text, file_name="f", system=False, handler="command", timezone="UTC")
    assert [line.why for line in crontab.refused] == ["is not UTF-8 text"]
    assert len(crontab.jobs) == 1


def test_an_unknown_time_zone_is_a_fault_of_the_call() -> None:
    with pytest.raises(ScheduleError, match="did you mean Europe/Madrid"):
        read("stat-collect", timezone="Europe/Madird")


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.iterdir())])
def test_each_line_is_a_job_or_refused_or_no_entry(name: str) -> None:
    for system in (True, False):
        crontab = read(name, system=system)
        numbers = sorted([*crontab.lines, *(line.number for line in crontab.refused)])
        assert len(numbers) == len(set(numbers))
        for job in crontab.jobs:
            assert parse_schedule(job["schedule"]).document == job["schedule"]


def test_dry_run_tells_each_line_and_ends_with_1_when_one_is_refused() -> None:
    files = [str(FOLDER / name) for name in ("stat-collect", "log-summary")]
    said = CliRunner().invoke(app, ["import-crontab", "--system", "--dry-run", "--timezone", "Europe/Madrid", *files])
    assert said.exit_code == 1
    assert "would create  stat-collect:5  5-55/10 * * * *" in said.output
    assert "refused       log-summary:5" in said.output
    assert "3 would create, 1 refused" in said.output


def test_dry_run_of_a_sound_file_ends_with_0() -> None:
    said = CliRunner().invoke(app, ["import-crontab", "--system", "--dry-run", str(FOLDER / "stat-collect")])
    assert said.exit_code == 0, said.output


@pytest.mark.parametrize("flags", [["--timezone", "Mars/Base"], ["--api", "ftp://example.org"]])
def test_wrong_flags_end_with_2(flags: list[str]) -> None:
    said = CliRunner().invoke(app, ["import-crontab", *flags, str(FOLDER / "stat-collect")])
    assert said.exit_code == 2


def test_an_api_that_does_not_answer_ends_with_1_and_says_what_to_do() -> None:
    flags = ["--system", "--api", "http://127.0.0.1:9"]  # the discard port: nobody listens
    said = CliRunner().invoke(app, ["import-crontab", *flags, str(FOLDER / "stat-collect")])
    assert said.exit_code == 1
    assert "--api or RINGCRON_API_URL names another" in said.output
