"""`ringcron import-crontab` against a real API, and its jobs on a real worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ringcron.api_keys import Scope
from ringcron.cli import app
from ringcron.local.processes import free_port
from tests.support.keys import keys_of
from tests.support.programs import Api, Programs
from tests.support.waiting import until_sync

pytestmark = pytest.mark.processes

CRONTAB = """\
# at home
GREETING='good  day'
SHELL=/bin/bash
@daily echo "$GREETING"
0 9 * * MON-FRI tr a-z A-Z%first line%100\\% of it
0 12 * * * echo same
0 12 * * * echo same
@reboot echo never
*/60 * * * * echo hourly
CRON_TZ=America/New_York
* 2 * 3 SUN#2 echo gap
"""


def imported(api: Api, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["import-crontab", "--api", api.url, *arguments])


def jobs(api: Api) -> list[dict[str, Any]]:
    status, page = api.call("GET", "/jobs?include=payload")
    assert status == 200
    found: list[dict[str, Any]] = page["items"]
    return found


def test_a_second_import_changes_nothing(programs: Programs, database_url: str, tmp_path: Path) -> None:
    api = programs.api(database_url)
    file = tmp_path / "home"
    file.write_text(CRONTAB)

    dry = imported(api, "--dry-run", str(file))
    assert dry.exit_code == 1
    assert "5 would create, 2 refused" in dry.output
    assert jobs(api) == []

    first = imported(api, "--timezone", "Europe/Madrid", str(file))
    assert first.exit_code == 1
    assert "4 created, 3 refused" in first.output
    assert "warning: no live worker has the handler 'command'" in first.stderr
    assert "--allow-commands" in first.stderr
    assert "home:8" in first.output  # @reboot
    assert "home:9" in first.output  # */60
    assert "home:11" in first.output  # never fires in New York: the API knows the instant of creation
    assert "no tick within eight years" in first.output
    stored = jobs(api)
    assert len(stored) == 4
    assert {job["schedule"]["timezone"] for job in stored} == {"Europe/Madrid"}
    assert {job["handler"] for job in stored} == {"command"}

    again = imported(api, "--timezone", "Europe/Madrid", str(file))
    assert again.exit_code == 1
    assert "4 kept, 3 refused" in again.output
    assert jobs(api) == stored


async def test_where_the_api_asks_for_a_key_it_is_taken_from_the_environment(
    programs: Programs, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keys_of(database_url) as keys:
        key = await keys.add(Scope.WRITE)
    api = programs.api(database_url)
    file = tmp_path / "home"
    file.write_text("@daily echo good day\n")

    without = imported(api, str(file))
    assert without.exit_code == 1
    assert "ringcron key add" in without.output
    monkeypatch.setenv("RINGCRON_API_KEY", key.reveal())
    assert "1 created" in imported(api, str(file)).output
    monkeypatch.setenv("RINGCRON_API_KEY", f"{key.reveal()}\nX-Other: 1")
    split = imported(api, str(file))
    assert split.exit_code == 2
    assert key.secret not in split.output


def test_what_is_imported_runs(programs: Programs, database_url: str, tmp_path: Path) -> None:
    api = programs.api(database_url)
    programs.worker(database_url, allow_commands=True)
    file = tmp_path / "home"
    file.write_text(CRONTAB)
    until_sync(lambda: "command" in handlers(api), what="the worker has reported")
    assert imported(api, str(file)).stderr == ""
    assert "no live worker has the handler 'other'" in imported(api, "--handler", "other", str(file)).stderr
    outputs = {job["schedule"]["cron"]: _run_now(api, job) for job in jobs(api) if job["handler"] == "command"}
    assert outputs == {"@daily": "good  day\n", "0 9 * * MON-FRI": "FIRST LINE\n100% OF IT\n", "0 12 * * *": "same\n"}


def test_the_api_is_that_of_the_folder_and_who_cannot_reach_it_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RINGCRON_API_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    (tmp_path / ".ringcron").mkdir()
    (tmp_path / ".ringcron/up.json").write_text(json.dumps({"apiUrl": url}))
    (tmp_path / "home").write_text("@daily echo good day\n")
    done = CliRunner().invoke(app, ["import-crontab", "home"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"ringcron: {url} cannot be reached: Connection refused\n"
        "`ringcron up` starts one on this machine; --api or RINGCRON_API_URL names another\n"
    )


def test_a_sound_file_ends_with_0(programs: Programs, database_url: str) -> None:
    api = programs.api(database_url)
    file = Path(__file__).parents[1] / "unit" / "crontabs" / "stat-collect"
    done = imported(api, "--system", str(file))
    assert (done.exit_code, len(jobs(api))) == (0, 2), done.output
    assert jobs(api)[0]["tags"] == ["crontab:stat-collect", "user:root"]


def handlers(api: Api) -> set[str]:
    return {handler for worker in api.call("GET", "/workers")[1]["items"] for handler in worker["handlers"]}


def _run_now(api: Api, job: dict[str, Any]) -> str:
    """The output of the job's command, run once as a one-off."""
    body = {"runAt": "2020-01-01T00:00:00Z", "handler": job["handler"], "payload": job["payload"]}
    status, created = api.call("POST", "/jobs", body)
    assert status == 201
    path = f"/jobs/{created['jobId']}/runs"
    until_sync(
        lambda: any(run["outcome"] for run in api.call("GET", path)[1]), seconds=30, what="the command has ended"
    )
    [run] = api.call("GET", path)[1]
    assert run["outcome"] == "succeeded", run
    output: str = run["result"]["output"]
    return output
