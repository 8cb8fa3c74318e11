"""Which servers the tests run against: given addresses, else Docker, else servers of our own on this machine."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Backend(StrEnum):
    URL = "url"
    DOCKER = "docker"
    EMBEDDED = "embedded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One backend for each server, and the PostgreSQL version that is asked for (None: whatever there is)."""

    postgres: Backend
    zookeeper: Backend
    postgres_url: str | None
    zookeeper_hosts: str | None
    postgres_major: int | None

    def sentence(self) -> str:
        """For the header of the test run. Names no address: a URL may hold a password."""
        version = "" if self.postgres_major is None else f" {self.postgres_major}"
        return f"servers: PostgreSQL{version} {_WORDS[self.postgres]}, ZooKeeper {_WORDS[self.zookeeper]}"


_WORDS = {
    Backend.URL: "at the given address",
    Backend.DOCKER: "in Docker",
    Backend.EMBEDDED: "embedded",
}


def choose(environment: Mapping[str, str], docker_answers: Callable[[], bool]) -> Choice:
    """Decide from RINGCRON_TEST_{BACKEND,DATABASE_URL,ZOOKEEPER,POSTGRES_MAJOR}; Docker is asked only if it matters.

    Raises ValueError for a backend that does not exist, or `url` without both addresses.
    """
    url = environment.get("RINGCRON_TEST_DATABASE_URL") or None
    hosts = environment.get("RINGCRON_TEST_ZOOKEEPER") or None
    major = environment.get("RINGCRON_TEST_POSTGRES_MAJOR") or None
    forced = environment.get("RINGCRON_TEST_BACKEND") or None
    if forced is not None:
        backend = Backend(forced)
        if backend is Backend.URL and (url is None or hosts is None):
            raise ValueError("RINGCRON_TEST_BACKEND=url needs RINGCRON_TEST_DATABASE_URL and RINGCRON_TEST_ZOOKEEPER")
        postgres = zookeeper = backend
    else:
        rest = Backend.URL
        if url is None or hosts is None:
            rest = Backend.DOCKER if docker_answers() else Backend.EMBEDDED
        postgres = rest if url is None else Backend.URL
        zookeeper = rest if hosts is None else Backend.URL
    return Choice(
        postgres=postgres,
        zookeeper=zookeeper,
        postgres_url=url if postgres is Backend.URL else None,
        zookeeper_hosts=hosts if zookeeper is Backend.URL else None,
        postgres_major=None if major is None else int(major),
    )


def docker_answers(from_env: Callable[..., Any] | None = None) -> bool:
    """Whether a Docker engine answers within two seconds; no where the docker package is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # docker-py leaves its socket open where nobody listens
        answers = _ping(from_env)
        gc.collect()
    return answers


def _ping(from_env: Callable[..., Any] | None) -> bool:
    try:
        if from_env is None:
            import docker

            from_env = docker.from_env
        with contextlib.closing(from_env(timeout=2)) as client:
            return bool(client.ping())
    except Exception:  # no package, no socket, a version too old, …: whatever it is, Docker is not to be had
        return False
