"""The command `ringcron`, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from ringcron import __version__
from ringcron.local.processes import free_port

pytestmark = pytest.mark.processes


def ringcron(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.endswith("DATABASE_URL")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "ringcron", *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_says_its_version() -> None:
    done = ringcron("--version")
    assert (done.returncode, done.stdout) == (0, f"ringcron {__version__}\n")


@pytest.mark.parametrize(
    "command", [(), ("api",), ("worker",), ("coordinator",), ("migrate",), ("up",), ("import-crontab",)]
)
def test_every_command_has_help(command: tuple[str, ...]) -> None:
    done = ringcron(*command, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout


def test_wrong_settings_are_all_told_at_once_and_end_with_2() -> None:
    done = ringcron("worker", "--concurrency", "many", "--batch-size", "0", RINGCRON_ZOOKEEPER="none")
    assert done.returncode == 2
    assert done.stdout == ""
    for name in ("RINGCRON_DATABASE_URL", "--concurrency", "--batch-size"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_the_api_refuses_to_be_seen_from_outside_while_there_is_no_key(database_url: str) -> None:
    done = ringcron("api", "--host", "0.0.0.0", RINGCRON_DATABASE_URL=database_url)
    assert done.returncode == 2
    assert "ringcron key add" in done.stderr
    assert "--insecure" in done.stderr


def test_an_unknown_flag_ends_with_2() -> None:
    assert ringcron("worker", "--colour").returncode == 2


def test_migrate_brings_an_empty_database_up_to_date_and_may_be_repeated(empty_database_url: str) -> None:
    first = ringcron("migrate", RINGCRON_DATABASE_URL=empty_database_url)
    assert (first.returncode, first.stderr) == (0, "")
    assert "applied migration 0001" in first.stdout
    second = ringcron("migrate", RINGCRON_DATABASE_URL=empty_database_url)
    assert second.returncode == 0
    assert "nothing to do" in second.stdout
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select count(*) from jobs").fetchone() == (0,)


def test_migrate_says_without_the_password_why_it_could_not() -> None:
    url = f"postgresql://me:s3cret@127.0.0.1:{free_port()}/x"
    done = ringcron("migrate", "--database-url", url)
    assert done.returncode == 1
    assert "refused" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
