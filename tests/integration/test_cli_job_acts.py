"""`ringcron job cancel | pause | resume | trigger | redrive | explain`, and what a claimed job lets be done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from ringcron.cli import app
from ringcron.models import PARKED
from tests.support.job_command import JobCommand, run
from tests.support.programs import Programs
from tests.support.waiting import until_sync

pytestmark = pytest.mark.processes

FAR = "2100-01-01T00:00:00Z"
LONG_AGO = "2020-01-01T00:00:00Z"
NOBODY = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"
Database = psycopg.Connection[Any]


@pytest.fixture
def job(programs: Programs, database_url: str) -> JobCommand:
    return JobCommand(programs.api(database_url).url)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def claim(database: Database, job_id: str) -> None:
    database.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_until = now() + interval '1 minute',"
        " claimed_at = now(), lease_generation = 3, attempt = 1 where id = %s",
        (job_id,),
    )


def die(database: Database, job_id: str) -> None:
    database.execute(
        "update jobs set state = 'dead', next_run_at = %s, attempt = 5, dead_reason = 'boom' where id = %s",
        (PARKED, job_id),
    )


def test_a_cancelled_job(job: JobCommand) -> None:
    job_id = job.add("--at", FAR)
    done = job("cancel", job_id)
    assert (done.exit_code, done.stdout) == (0, f"cancelled {job_id}: nothing will start any more\n")
    assert job.json("cancel", job_id) == {"jobId": job_id, "ended": True}
    assert job.json("show", job_id)["state"] == "cancelled"


def test_a_claimed_job_shows_what_else_can_be_done(job: JobCommand, database: Database) -> None:
    job_id = job.add("--every", "1h")
    claim(database, job_id)
    done = job("cancel", job_id)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "claimed by w.1" in done.stderr
    ways = [line.partition(": ringcron ")[2] for line in done.stderr.splitlines() if ": ringcron " in line]
    assert ways == [f"job cancel {job_id} --after-current", f"job cancel {job_id} --run"]
    last, stopped = (CliRunner().invoke(app, way.split(), env={"RINGCRON_API_URL": job.url}) for way in ways)
    assert (last.exit_code, last.stdout) == (0, f"cancelled {job_id}: nothing follows the run in progress\n")
    assert (stopped.exit_code, stopped.stdout) == (0, f"asked w.1 to stop {job_id}.3\n")
    assert database.execute("select cancel_requested from jobs").fetchone() == (True,)


def test_there_may_be_no_run_to_stop(job: JobCommand) -> None:
    done = job("cancel", job.add("--at", FAR), "--run")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no run of" in done.stderr


def test_a_job_is_paused_and_resumed(job: JobCommand, database: Database) -> None:
    job_id = job.add("--every", "1h")
    assert job("pause", job_id, "--reason", "lunch \x1b[2J").stdout == f"paused {job_id}\n"
    shown = job("show", job_id).stdout
    assert "lunch \\x1b[2J" in shown
    assert "\x1b" not in job("explain", job_id).stdout
    assert job("resume", job_id).stdout == f"resumed {job_id}\n"
    assert job.json("show", job_id)["state"] == "due"
    claim(database, job_id)
    assert job("pause", job_id).stdout == f"{job_id}: w.1 runs it; paused when its attempt has ended\n"
    assert job.json("pause", job_id)["state"] == "claimed"


def test_a_triggered_job_runs_on_a_real_worker(job: JobCommand, programs: Programs, database_url: str) -> None:
    programs.worker(database_url)
    job_id = job.add("--at", FAR, "--handler", "log")
    assert job("trigger", job_id).stdout == f"triggered {job_id}\n"
    until_sync(lambda: any(run["outcome"] for run in job.json("runs", job_id)), seconds=30)
    [ran] = job.json("runs", job_id)
    assert (ran["outcome"], ran["cause"]) == ("succeeded", "manual")
    assert job.json("show", job_id)["nextRunAt"] == FAR


def test_a_running_job_is_stopped(job: JobCommand, programs: Programs, database_url: str) -> None:
    programs.worker(database_url)
    job_id = job.add("--at", LONG_AGO, "--handler", "sleep", "--payload", '{"seconds": 600}')
    until_sync(lambda: job.json("show", job_id)["runId"], seconds=30)
    assert "running" in job("runs", job_id).stdout
    assert job("cancel", job_id, "--run").exit_code == 0
    until_sync(lambda: job.json("show", job_id)["state"] == "cancelled", seconds=30)
    assert [ran["outcome"] for ran in job.json("runs", job_id)] == ["cancelled"]


def test_dead_jobs_run_again(job: JobCommand, database: Database) -> None:
    jobs = [job.add("--at", FAR, "--handler", handler) for handler in ("log", "log", "http")]
    for job_id in jobs:
        die(database, job_id)
    assert "boom" in job("show", jobs[0]).stdout
    assert job("redrive", jobs[0]).stdout == f"redriven {jobs[0]}\n"
    assert re.fullmatch(
        r"redriven: 1, the last due \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n",
        job("redrive", "--all", "--handler", "log", "--per-second", "5").stdout,
    )
    again = job.json("redrive", "--all", "--limit", "10")
    assert again["count"] == 1
    assert again["lastAt"].endswith("Z")
    assert job("redrive", "--all").stdout == "redriven: 0\n"
    wrong = job("redrive", jobs[0])
    assert wrong.exit_code == 1
    assert "only a dead job" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("redrive",), "give the id of a job, or --all"),
        (("redrive", NOBODY, "--all"), "give the id of a job, or --all"),
        (("redrive", NOBODY, "--tag", "t"), "--tag: goes with --all only"),
        (("cancel", NOBODY, "--run", "--after-current"), "do not go together"),
        (("pause",), "Missing argument"),
        (("show", "../x"), "is no id of a job"),
    ],
    ids=str,
)
def test_wrong_usage_ends_with_2_before_any_call(arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments, RINGCRON_API_URL="http://127.0.0.1:9")
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "command", ["show", "runs", "skips", "explain", "cancel", "pause", "resume", "trigger", "redrive"]
)
def test_what_nobody_has_ends_with_1(job: JobCommand, command: str) -> None:
    done = job(command, NOBODY)
    assert (done.exit_code, done.stdout) == (1, "")
    assert NOBODY in done.stderr
    assert "ringcron job list" in done.stderr


def test_why_a_job_has_not_run_is_explained(job: JobCommand) -> None:
    job_id = job.add("--at", LONG_AGO, "--handler", "nobodys")
    done = job("explain", job_id)
    assert done.exit_code == 0
    assert "No worker has its handler 'nobodys'" in done.stdout
    explained = job.json("explain", job_id)
    assert explained["code"] == "no-worker"
    assert explained["sentence"] == done.stdout.strip()


def test_a_key_is_shown_where_one_is_needed(
    job: JobCommand, programs: Programs, database_url: str, tmp_path: Path
) -> None:
    environment = {"RINGCRON_DATABASE_URL": database_url}
    added = CliRunner().invoke(app, ["key", "add", "me", "--scope", "read"], env=environment)
    assert added.exit_code == 0, added.output
    key = added.stdout.strip()
    file = tmp_path / "key"
    file.write_text(f"{key}\n", encoding="utf-8")

    def needs_a_key() -> bool:
        return job("list").exit_code == 1

    until_sync(needs_a_key, seconds=30)  # an API learns of the first key after a moment
    refused = job("list")
    assert "RINGCRON_API_KEY_FILE" in refused.stderr
    for given in ({"RINGCRON_API_KEY": key}, {"RINGCRON_API_KEY_FILE": str(file)}):
        assert job("list", **given).exit_code == 0
    assert job("list", "--api-key", key).exit_code == 0
    narrow = job("add", "--at", FAR, RINGCRON_API_KEY=key)
    assert narrow.exit_code == 1
    assert "wider scope" in narrow.stderr
    wrong = job("list", "--json", RINGCRON_API_KEY=f"{key}x")
    assert json.loads(wrong.stderr)["code"] == "unauthorized"
    assert key not in wrong.output + narrow.output + refused.output
    assert job("list", RINGCRON_API_KEY_FILE=str(tmp_path / "none")).exit_code == 2
