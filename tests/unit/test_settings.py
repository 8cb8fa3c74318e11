"""Settings: where they come from, and that every fault is told at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ringcron.errors import ConfigError
from ringcron.settings import ApiSettings, CommonSettings, CoordinatorSettings, WorkerSettings

URL = "postgresql://ringcron:s3cret@db:5432/ringcron"
GOOD = {"RINGCRON_DATABASE_URL": URL, "RINGCRON_ZOOKEEPER": "none"}


def faults(program: type[CommonSettings], environment: dict[str, str], **overrides: object) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        program.load(environment, **overrides)
    return raised.value.faults


def test_a_worker_needs_two_settings_and_has_a_default_for_every_other() -> None:
    settings = WorkerSettings.load(GOOD)
    assert settings.database_url == URL
    assert settings.zookeeper is None
    assert settings.name == socket.gethostname()
    assert (settings.lease_seconds, settings.session_seconds, settings.poll_seconds) == (15.0, 10.0, 1.0)
    assert (settings.drain_seconds, settings.concurrency, settings.batch_size) == (30.0, 10, 500)
    assert (settings.handlers, settings.default_handler, settings.allow_commands) == ((), "log", False)
    assert settings.metrics_port is None


def test_the_defaults_of_the_coordinator_and_the_api() -> None:
    coordinator = CoordinatorSettings.load(GOOD)
    assert (coordinator.quiet_seconds, coordinator.quiet_cap_seconds, coordinator.ack_seconds) == (2.0, 10.0, 5.0)
    assert (coordinator.keep_runs_seconds, coordinator.keep_jobs_seconds) == (30 * 86400.0, 7 * 86400.0)
    assert (coordinator.days_ahead, coordinator.keep_runs_bytes, coordinator.relist_seconds) == (14, None, 10.0)
    api = ApiSettings.load({"RINGCRON_DATABASE_URL": URL})
    assert (api.host, api.port, api.insecure, api.pool_size) == ("127.0.0.1", 8080, False, 8)


def test_a_flag_wins_over_the_variable_and_the_variable_over_the_default() -> None:
    environment = {**GOOD, "RINGCRON_CONCURRENCY": "7"}
    assert WorkerSettings.load(environment).concurrency == 7
    assert WorkerSettings.load(environment, concurrency="9").concurrency == 9
    assert WorkerSettings.load(environment, concurrency=9).concurrency == 9
    assert WorkerSettings.load(environment, concurrency=None).concurrency == 7


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert WorkerSettings.load({**GOOD, "RINGCRON_CONCURRENCY": ""}).concurrency == 10
    assert "RINGCRON_DATABASE_URL is not set" in faults(ApiSettings, {"RINGCRON_DATABASE_URL": ""})[0]


def test_the_database_is_also_found_under_its_usual_name_but_ours_comes_first() -> None:
    assert ApiSettings.load({"DATABASE_URL": URL}).database_url == URL
    both = {"DATABASE_URL": "postgresql://other/db", "RINGCRON_DATABASE_URL": URL}
    assert ApiSettings.load(both).database_url == URL


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(URL + "\n")
    assert ApiSettings.load({"RINGCRON_DATABASE_URL_FILE": str(secret)}).database_url == URL
    missing = faults(ApiSettings, {"RINGCRON_DATABASE_URL_FILE": str(tmp_path / "none")})
    assert missing == [f"RINGCRON_DATABASE_URL_FILE: {tmp_path / 'none'} cannot be read: No such file or directory"]


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3.0), ("1.5", 1.5), ("PT30S", 30.0), ("PT1M30S", 90.0), ("pt2s", None), ("P1Y", None)]
)
def test_a_duration_is_seconds_or_iso_8601(text: str, value: float | None) -> None:
    environment = {**GOOD, "RINGCRON_LEASE_SECONDS": text}
    if value is None:
        assert faults(WorkerSettings, environment) == [
            f"RINGCRON_LEASE_SECONDS: {text!r} must be a duration from 1 to 3600 seconds, in seconds (30) or in "
            "ISO 8601 (PT30S)"
        ]
    else:
        assert WorkerSettings.load(environment).lease_seconds == value


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "4000", "1e9", "soon"])
def test_a_duration_out_of_range_is_refused(text: str) -> None:
    assert len(faults(WorkerSettings, {**GOOD, "RINGCRON_LEASE_SECONDS": text})) == 1


def test_retention_is_set_by_its_short_names() -> None:
    environment = {**GOOD, "RINGCRON_KEEP_RUNS": "P90D", "RINGCRON_KEEP_JOBS_SECONDS": "P2D"}
    settings = CoordinatorSettings.load({**environment, "RINGCRON_KEEP_RUNS_BYTES": "20GiB"})
    assert settings.keep_runs_seconds == 90 * 86400.0
    assert settings.keep_jobs_seconds == 2 * 86400.0
    assert settings.keep_runs_bytes == 20 << 30


def test_lists_have_commas_and_flags_have_words() -> None:
    environment = {
        **GOOD,
        "RINGCRON_HANDLERS": "my.jobs, more/jobs.py",
        "RINGCRON_HTTP_ALLOW": "127.0.0.0/8,::1",
        "RINGCRON_ALLOW_COMMANDS": "yes",
    }
    settings = WorkerSettings.load(environment)
    assert settings.handlers == ("my.jobs", "more/jobs.py")
    assert settings.http_allow == ("127.0.0.0/8", "::1/128")
    assert settings.allow_commands is True
    assert WorkerSettings.load(environment, handlers=["one"], allow_commands=False).handlers == ("one",)
    assert WorkerSettings.load(environment, allow_commands=False).allow_commands is False


@pytest.mark.parametrize(
    "hosts", ["h1", "h1:2181", "h1:2181,h2:2181,h3:2181/ringcron", "10.0.0.1:2181/a/b", "[::1]:2181"]
)
def test_zookeeper_hosts_are_taken_as_they_are(hosts: str) -> None:
    assert WorkerSettings.load({**GOOD, "RINGCRON_ZOOKEEPER": hosts}).zookeeper == hosts


@pytest.mark.parametrize("hosts", ["h1:port", "h1:99999", "h1,,h2", "zk://h1:2181", "h1 h2", "/ringcron"])
def test_zookeeper_hosts_that_cannot_be_are_refused(hosts: str) -> None:
    assert faults(WorkerSettings, {**GOOD, "RINGCRON_ZOOKEEPER": hosts}) == [
        f"RINGCRON_ZOOKEEPER: {hosts!r} must look like h1:2181,h2:2181,h3:2181/ringcron, or none"
    ]


def test_a_worker_does_not_guess_whether_there_is_a_zookeeper() -> None:
    fault = faults(WorkerSettings, {"RINGCRON_DATABASE_URL": URL})
    assert fault == [
        "RINGCRON_ZOOKEEPER is not set: ZooKeeper, as h1:2181,h2:2181,h3:2181/ringcron; none: do without, every worker "
        "claims from the whole ring"
    ]


def test_all_faults_are_told_at_once_with_their_variable_or_flag() -> None:
    environment = {
        "RINGCRON_ZOOKEEPER": "h1:port",
        "RINGCRON_CONCURRENCY": "many",
        "RINGCRON_WORKER_NAME": "a/b",
        "RINGCRON_HTTP_DENY": "everything",
        "RINGCRON_LOG_LEVEL": "loud",
        "RINGCRON_ALLOW_COMMANDS": "perhaps",
    }
    told = faults(WorkerSettings, environment, poll_seconds="never", batch_size=501)
    named = {fault.split(":")[0].split(" ")[0] for fault in told}
    assert named == {*environment, "RINGCRON_DATABASE_URL", "--poll-seconds", "--batch-size"}
    assert len(told) == len(named)
    assert "RINGCRON_CONCURRENCY: 'many' must be a whole number from 1 to 10000" in told


def test_a_fault_never_shows_a_secret() -> None:
    for wrong in ("mysql://ringcron:s3cret@db/x", "ringcron:s3cret@db"):
        told = faults(ApiSettings, {"RINGCRON_DATABASE_URL": wrong})
        assert "s3cret" not in str(ConfigError(told))
        assert told == ["RINGCRON_DATABASE_URL: its value must look like postgresql://user:password@host:5432/database"]


@pytest.mark.parametrize(
    ("settings", "may_be_open"),
    [
        ({"host": "127.0.0.1"}, True),
        ({"host": "127.8.8.8"}, True),
        ({"host": "::1"}, True),
        ({"host": "localhost"}, True),
        ({"host": "localhost", "require_keys": "always"}, False),
        ({"host": "0.0.0.0"}, False),
        ({"host": "::"}, False),
        ({"host": "10.0.0.7"}, False),
        ({"host": "api.example"}, False),
        ({"host": "0.0.0.0", "insecure": True}, True),
        ({"host": "0.0.0.0", "insecure": True, "require_keys": "always"}, False),
    ],
)
def test_the_api_may_do_without_keys_on_loopback_or_where_it_is_told_to(
    settings: dict[str, object], may_be_open: bool
) -> None:
    assert ApiSettings.load({"RINGCRON_DATABASE_URL": URL}, **settings).may_be_open is may_be_open


def test_settings_that_contradict_each_other_are_refused() -> None:
    assert "RINGCRON_QUIET_CAP_SECONDS" in faults(CoordinatorSettings, GOOD, quiet_seconds=11)[0]


def test_nobody_listens_behind_a_transaction_pooler() -> None:
    (fault,) = faults(WorkerSettings, GOOD, database_pooler="transaction")
    assert "RINGCRON_BELL is 'listen'" in fault
    assert "RINGCRON_DATABASE_POOLER=transaction" in fault
    assert WorkerSettings.load(GOOD, database_pooler="transaction", bell="poll").behind_pooler
    assert ApiSettings.load(GOOD, database_pooler="transaction").bell == "listen"  # it rings, which needs no session
    assert not WorkerSettings.load(GOOD).behind_pooler


def test_a_setting_that_does_not_exist_is_refused() -> None:
    assert faults(ApiSettings, GOOD, colour="blue") == ["colour is not a setting of this program"]
