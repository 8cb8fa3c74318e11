"""Which servers the tests choose, with a pretended Docker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.backends import Backend, choose, docker_answers

URL = "postgresql://user:secret@db/x"
HOSTS = "zk:2181"


def never() -> bool:
    raise AssertionError("Docker must not be asked here")


def test_given_addresses_come_first_and_docker_is_not_asked() -> None:
    choice = choose({"RINGCRON_TEST_DATABASE_URL": URL, "RINGCRON_TEST_ZOOKEEPER": HOSTS}, never)
    assert (choice.postgres, choice.zookeeper) == (Backend.URL, Backend.URL)
    assert (choice.postgres_url, choice.zookeeper_hosts) == (URL, HOSTS)


@pytest.mark.parametrize(("answers", "rest"), [(True, Backend.DOCKER), (False, Backend.EMBEDDED)])
def test_without_addresses_docker_is_used_where_it_answers(answers: bool, rest: Backend) -> None:
    choice = choose({}, lambda: answers)
    assert (choice.postgres, choice.zookeeper) == (rest, rest)
    assert choice.postgres_url is None
    assert choice.zookeeper_hosts is None


def test_one_given_address_leaves_the_other_server_to_docker_or_us() -> None:
    choice = choose({"RINGCRON_TEST_DATABASE_URL": URL}, lambda: False)
    assert (choice.postgres, choice.zookeeper) == (Backend.URL, Backend.EMBEDDED)


def test_a_forced_backend_wins_over_addresses() -> None:
    environment = {"RINGCRON_TEST_BACKEND": "embedded", "RINGCRON_TEST_DATABASE_URL": URL}
    choice = choose(environment, never)
    assert (choice.postgres, choice.zookeeper) == (Backend.EMBEDDED, Backend.EMBEDDED)
    assert choice.postgres_url is None


def test_forcing_url_without_both_addresses_is_refused() -> None:
    with pytest.raises(ValueError, match="RINGCRON_TEST_ZOOKEEPER"):
        choose({"RINGCRON_TEST_BACKEND": "url", "RINGCRON_TEST_DATABASE_URL": URL}, never)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="podman"):
        choose({"RINGCRON_TEST_BACKEND": "podman"}, never)


def test_a_version_may_be_asked_for() -> None:
    assert choose({"RINGCRON_TEST_POSTGRES_MAJOR": "15"}, lambda: False).postgres_major == 15
    assert choose({}, lambda: False).postgres_major is None


def test_the_header_names_the_choice_and_no_password() -> None:
    environment = {"RINGCRON_TEST_DATABASE_URL": URL, "RINGCRON_TEST_POSTGRES_MAJOR": "15"}
    sentence = choose(environment, lambda: False).sentence()
    assert sentence == "servers: PostgreSQL 15 at the given address, ZooKeeper embedded"
    assert "secret" not in sentence


class FakeDocker:
    def __init__(self, ping: Any) -> None:
        self._ping = ping
        self.closed = False

    def ping(self) -> Any:
        if isinstance(self._ping, Exception):
            raise self._ping
        return self._ping

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("ping", "answers"), [(True, True), (False, False), (OSError("no socket"), False)])
def test_docker_is_asked_by_a_ping_and_its_client_is_closed(ping: Any, answers: bool) -> None:
    client = FakeDocker(ping)
    asked: dict[str, Any] = {}

    def from_env(**keywords: Any) -> FakeDocker:
        asked.update(keywords)
        return client

    assert docker_answers(from_env) is answers
    assert asked == {"timeout": 2}
    assert client.closed


def test_no_docker_at_all_is_no() -> None:
    def from_env(**_: Any) -> FakeDocker:
        raise RuntimeError("no engine")

    assert docker_answers(from_env) is False
