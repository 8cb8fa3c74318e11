"""`ringcron job …` against a real API: tables and JSON, exit codes, and errors that say what to do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from ringcron.cli import app
from ringcron.local.processes import free_port
from tests.support.job_command import JobCommand, run
from tests.support.programs import Api, Programs
from tests.support.waiting import until_sync

pytestmark = pytest.mark.processes

COMMANDS = [
    "add",
    "list",
    "show",
    "runs",
    "skips",
    "explain",
    "cancel",
    "pause",
    "resume",
    "trigger",
    "redrive",
    "preview",
]
FAR = "2100-01-01T00:00:00Z"
NOBODY = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"


@pytest.fixture
def api(programs: Programs, database_url: str) -> Api:
    return programs.api(database_url)


@pytest.fixture
def job(api: Api) -> JobCommand:
    return JobCommand(api.url)


@pytest.fixture
def database(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def now(database: psycopg.Connection[Any]) -> datetime:
    row = database.execute("select clock_timestamp()").fetchone()
    assert row is not None
    instant: datetime = row[0]
    return instant


def test_what_is_added_is_what_the_api_stores(api: Api, job: JobCommand) -> None:
    document = job.json(
        "add",
        *("--cron", "0 9 * * MON-FRI", "--timezone", "Europe/Madrid", "--end-at", FAR, "--max-runs", "7"),
        *("--payload", '{"a": [1, null]}', "--handler", "log", "--name", "Report", "--key", "r"),
        *("--tag", "x", "--tag", "y", "--max-attempts", "3", "--min-backoff", "250ms", "--max-backoff", "1h30m"),
        *("--multiplier", "3", "--max-lost", "2", "--timeout", "PT10M", "--overlap", "buffer_one"),
        *("--catchup", "all", "--catchup-window", "2d", "--jitter", "5m", "--on-exhausted", "dead"),
    )
    assert len(document.pop("nextRuns")) == 7
    assert document.pop("created") is True
    assert api.call("GET", f"/jobs/{document['jobId']}") == (200, document)
    assert document["schedule"] == {
        "cron": "0 9 * * MON-FRI",
        "timezone": "Europe/Madrid",
        "endAt": FAR,
        "maxRuns": 7,
    }
    assert document["retry"] == {
        "maxAttempts": 3,
        "minBackoff": "PT0.25S",
        "maxBackoff": "PT1H30M",
        "multiplier": 3,
        "maxLost": 2,
    }
    assert (document["payload"], document["tags"]) == ({"a": [1, None]}, ["x", "y"])
    assert (document["timeout"], document["overlap"], document["catchup"]) == ("PT10M", "buffer_one", "all")
    assert (document["catchupWindow"], document["jitter"], document["onExhausted"]) == ("P2D", "PT5M", "dead")


def test_an_interval_and_an_instant(job: JobCommand) -> None:
    every = job.json("add", "--every", "20s", "--anchor", "2027-01-01T00:00:05Z")
    assert every["schedule"] == {"every": "PT20S", "anchor": "2027-01-01T00:00:05Z"}
    once = job.json("add", "--at", "2100-01-01T01:00:00+01:00")
    assert once["runAt"] == FAR
    assert "schedule" not in once


def test_soon_is_counted_by_the_clock_of_the_database(job: JobCommand, database: psycopg.Connection[Any]) -> None:
    before = now(database)
    run_at = datetime.fromisoformat(job.json("add", "--in", "1h30m")["runAt"])
    assert before <= run_at - timedelta(minutes=90) <= now(database)


def test_a_rehearsal_creates_nothing(job: JobCommand) -> None:
    done = job("add", "--every", "20s", "--name", "Rehearsed", "--dry-run")
    assert done.exit_code == 0
    assert "Rehearsed" in done.stdout
    assert job.json("list") == []
    assert job("add", "--every", "20s", "--handler", "no good", "--dry-run").exit_code == 1


def test_a_schedule_is_previewed_with_its_clock_changes(job: JobCommand) -> None:
    flags = ("--cron", "30 2 * * *", "--timezone", "Europe/Madrid", "--after", "2027-03-27T00:00:00Z", "--count", "3")
    done = job("preview", *flags)
    assert done.exit_code == 0, done.output
    assert [line[:20] for line in done.stdout.splitlines()[1:]] == [
        "2027-03-27 01:30:00Z",
        "2027-03-28 01:00:00Z",
        "2027-03-29 00:30:00Z",
    ]
    assert [line[22:47] for line in done.stdout.splitlines()] == [
        "IN Europe/Madrid         ",
        "2027-03-27 02:30:00+01:00",
        "2027-03-28 03:00:00+02:00",
        "2027-03-29 02:30:00+02:00",
    ]
    assert job("preview", *flags[1:]).stdout == done.stdout
    assert "given already as --cron" in job("preview", "@daily", *flags).stderr
    preview = json.loads(job("preview", "--json", *flags).stdout)
    [mark] = preview["marks"]
    assert mark["at"] == preview["nextRuns"][1] == "2027-03-28T01:00:00Z"
    assert mark["mark"] in done.stdout.splitlines()[2]
    assert job("preview").exit_code == 2
    refused = job("preview", "--cron", "@reboot")
    assert refused.exit_code == 1
    assert "--cron" in refused.stderr


def test_a_payload_may_come_from_a_file_or_from_standard_input(job: JobCommand, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"é": 1}', encoding="utf-8")
    assert job.json("add", "--at", FAR, "--payload", f"@{file}")["payload"] == {"é": 1}
    done = job("add", "--json", "--at", FAR, "--payload", "@-", stdin="[1, 2]")
    assert json.loads(done.stdout)["payload"] == [1, 2]


def test_people_see_the_job_and_when_it_runs(job: JobCommand) -> None:
    done = job("add", "--cron", "@daily", "--name", "Nightly")
    assert done.exit_code == 0
    assert re.search(r"^job +[0-9a-f-]{36}$", done.stdout, re.MULTILINE)
    assert re.search(r"^when +@daily \(UTC\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^next run +\d{4}-\d\d-\d\d 00:00:00Z$", done.stdout, re.MULTILINE)
    assert re.search(r"^then +(\d{4}-\d\d-\d\d 00:00:00Z(, )?){3}$", done.stdout, re.MULTILINE)
    job_id = re.search(r"^job +(\S+)$", done.stdout, re.MULTILINE)
    assert job_id
    shown = job("show", job_id[1])
    assert shown.exit_code == 0
    assert re.search(r"^name +Nightly$", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "exactly one of --in, --at, --cron and --every"),
        (("--in", "3s", "--at", FAR), "exactly one of"),
        (("--in", "soon"), "'--in': must be a duration such as 3s"),
        (("--at", "2027-01-01T00:00:00"), "'--at': has no offset"),
        (("--every", "1 hour"), "'--every': must be a duration"),
        (("--at", FAR, "--timezone", "UTC"), "--timezone: goes with --cron only"),
        (("--at", FAR, "--max-runs", "3"), "--max-runs: goes with --cron or --every only"),
        (("--cron", "@daily", "--anchor", FAR), "--anchor: goes with --every only"),
        (("--at", FAR, "--payload", "{a"), "'--payload': is no JSON"),
        (("--at", FAR, "--payload", "NaN"), "NaN is no JSON number"),
        (("--at", FAR, "--payload", "[" * 100_000), "nested too deeply"),
        (("--at", FAR, "--payload", "@/nowhere"), "/nowhere cannot be read: No such file"),
        (("--at", FAR, "--overlap", "both"), "'--overlap'"),
        (("--at", FAR, "--max-attempts", "many"), "'--max-attempts'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_wrong_usage_ends_with_2_before_any_call(arguments: tuple[str, ...], told: str) -> None:
    done = run("add", *arguments, RINGCRON_API_URL="http://127.0.0.1:9")
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert told in " ".join(done.stderr.split())


def test_what_the_api_refuses_is_told_by_the_name_of_the_flag(job: JobCommand) -> None:
    done = job("add", "--cron", "61 * * * *", "--max-attempts", "0", "--handler", "no good", "--tag", "")
    assert done.exit_code == 1
    assert done.stdout == ""
    for flag in ("--cron", "--max-attempts must be at least 1", "--handler must be", "--tag must not be empty"):
        assert f"\n  {flag}" in done.stderr
    never = job("add", "--cron", "0 0 30 2 *")
    assert never.exit_code == 1
    assert "--cron never has a tick" in never.stderr


def test_with_json_an_error_is_a_problem_document(job: JobCommand) -> None:
    done = job("show", NOBODY, "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert json.loads(done.stderr)["code"] == "not-found"


def test_a_key_that_is_taken_shows_the_way_forward(job: JobCommand) -> None:
    first = job.json("add", "--at", FAR, "--key", "k")
    done = job("add", "--at", FAR, "--key", "k")
    assert done.exit_code == 1
    assert f"ringcron job show {first['jobId']}" in done.stderr
    assert "--on-conflict" in done.stderr
    kept = job.json("add", "--at", FAR, "--key", "k", "--on-conflict", "keep")
    assert (kept["jobId"], kept["created"]) == (first["jobId"], False)


def test_jobs_are_listed_in_a_table_that_is_never_cut(job: JobCommand) -> None:
    name = "a name that is " + "very " * 40 + "long"
    job.json("add", "--at", FAR, "--name", name, "--tag", "t")
    job.json("add", "--every", "PT15M", "--handler", "log", "--key", "k")
    done = job("list")
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["JOB", "STATE", "NEXT", "RUN", "WHEN", "NAME", "KEY", "HANDLER"]
    assert len(rows) == 2
    assert "every PT15M" in rows[0]
    assert name in rows[1]
    assert not any(row.endswith(" ") for row in rows)
    assert len(job("list", "--tag", "t").stdout.splitlines()) == 2
    none = job("list", "--state", "dead")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "no jobs\n")


def test_what_others_wrote_cannot_rewrite_a_terminal(job: JobCommand) -> None:
    job.json("add", "--at", FAR, "--name", "\x1b[2Jgone\n[bold]x[/bold]")
    done = job("list")
    assert r"\x1b[2Jgone\x0a[bold]x[/bold]" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_list_says_where_it_was_cut_and_all_of_it_can_be_had(job: JobCommand) -> None:
    ids = [job.add("--at", FAR) for _ in range(5)][::-1]
    cut = job("list", "--limit", "3", "--json")
    assert [listed["jobId"] for listed in json.loads(cut.stdout)] == ids[:3]
    assert "--all" in cut.stderr
    whole = job("list", "--limit", "3", "--all", "--json")
    assert [listed["jobId"] for listed in json.loads(whole.stdout)] == ids
    assert whole.stderr == ""
    assert "payload" not in json.loads(whole.stdout)[0]
    assert job.json("list", "--payload")[0]["payload"] is None


def test_runs_of_a_real_worker_are_shown(job: JobCommand, programs: Programs, database_url: str) -> None:
    programs.worker(database_url)
    good = job.add("--at", "2020-01-01T00:00:00Z", "--handler", "log", "--payload", '{"message": "hi"}')
    bad = job.add("--at", "2020-01-01T00:00:00Z", "--handler", "fail", "--max-attempts", "1")

    def ended(job_id: str) -> bool:
        return any(run["outcome"] for run in job.json("runs", job_id))

    until_sync(lambda: ended(good) and ended(bad), seconds=30)
    [run] = job.json("runs", good)
    assert (run["outcome"], run["cause"], run["attempt"]) == ("succeeded", "schedule", 1)
    header, row = job("runs", bad).stdout.splitlines()
    assert header.startswith("STARTED")
    assert row.endswith(f"{bad}.1")
    assert "failed" in row
    assert re.search(r"\d+\.\d{3} s", row)


def test_a_job_without_history_says_so(job: JobCommand) -> None:
    job_id = job.add("--at", FAR)
    for history in ("runs", "skips"):
        done = job(history, job_id)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"no {history}\n")
        assert job.json(history, job_id) == []


def test_nobody_at_the_address_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    done = run("list", "--api", url)
    assert (done.exit_code, done.stdout) == (3, "")
    assert url in done.stderr
    assert "ringcron up" in done.stderr
    assert "--api" in done.stderr
    as_json = run("list", "--json", "--api", url)
    assert as_json.exit_code == 3
    assert json.loads(as_json.stderr)["code"] == "unreachable"


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "ftp://x", "http://me:s3cret@x"])
def test_what_is_no_address_ends_with_2(address: str) -> None:
    done = run("list", "--api", address)
    assert done.exit_code == 2
    assert "s3cret" not in done.output


def test_the_api_of_this_folder_is_found(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RINGCRON_API_URL", raising=False)
    up_file = tmp_path / ".ringcron" / "up.json"
    up_file.parent.mkdir()
    up_file.write_text(json.dumps({"apiUrl": api.url}))
    assert run("list").exit_code == 0
    elsewhere = f"http://127.0.0.1:{free_port()}"
    assert run("list", RINGCRON_API_URL=elsewhere).exit_code == 3
    assert run("list", "--api", api.url, RINGCRON_API_URL=elsewhere).exit_code == 0


def test_a_shell_completes_commands_states_and_ids(api: Api, job: JobCommand) -> None:
    first = job.add("--at", FAR, "--name", "one $(touch x) 'two'")
    assert completed("ringcron job ", 2) == COMMANDS
    assert completed("ringcron job list --state d", 4) == ["due", "done", "dead"]
    assert completed(f"ringcron job show --api {api.url} ", 5) == [first]
    assert completed(f"ringcron job redrive --api {api.url} ", 5) == []
    zsh = CliRunner().invoke(
        app,
        [],
        prog_name="ringcron",
        env={"_RINGCRON_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"ringcron job show --api {api.url} "},
    )
    assert "due one __touch x_ _two_" in zsh.stdout
    unreachable = f"http://127.0.0.1:{free_port()}"
    assert completed(f"ringcron job show --api {unreachable} ", 5) == []


def completed(line: str, word: int) -> list[str]:
    environment = {"_RINGCRON_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    done = CliRunner().invoke(app, [], prog_name="ringcron", env=environment)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_every_command_has_help(command: str) -> None:
    done = run(*command.split(), "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.stdout
    assert not command or all(flag in done.stdout for flag in ("--api ", "--api-key ", "--json"))


def test_no_program_carries_what_only_these_commands_need() -> None:
    asked = "import sys, ringcron.cli; print(sorted({'aiohttp', 'pydantic', 'ringcron.client'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
