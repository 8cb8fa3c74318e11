"""A cluster of our own on this machine: durable PostgreSQL, ZooKeeper, coordinator, API, workers.

Invariants: commits are durable (fsync and synchronous_commit stay on) and the schema is the released one; what is
started is gone when the context ends. Everything is started from the main thread.
"""

from __future__ import annotations

import asyncio
import http.client
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loadtest.cluster.errors import ClusterError
from loadtest.cluster.holdings import REPORTED_SECONDS, Holding
from loadtest.cluster.programs import Launcher, Program
from loadtest.database import Database
from loadtest.handlers import HANDLER, SLOWNESS_VARIABLE
from loadtest.progress import Progress
from loadtest.starts import FOLDER_VARIABLE, StartLogs
from ringcron.clock import SystemClock
from ringcron.local.postgres import PostgresServer, remove
from ringcron.local.processes import free_port
from ringcron.local.zookeeper import ZooKeeperServer
from ringcron.slots import SLOT_COUNT
from ringcron_sql.migrate import migrate

POSTGRES_SETTINGS: Final[Mapping[str, str]] = {
    "shared_buffers": "1GB",
    "max_connections": "500",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "effective_cache_size": "4GB",
    "maintenance_work_mem": "256MB",
    "random_page_cost": "1.1",
    "shared_preload_libraries": "pg_stat_statements",
}
"""What somebody who runs PostgreSQL for a scheduler would set. Durability is left at its defaults."""

WAVE: Final = 8
"""How many workers start at a time: each takes most of a second of CPU, and a machine has few cores."""
SERVING_SECONDS: Final = 60.0
SERVING_SECONDS_A_WORKER: Final = 3.0
LOOK_SECONDS: Final = 0.05
CARVED_DAYS: Final = 10
"""Partitions of `jobs` that tell that the coordinator's upkeep has made the days."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterPlan:
    """What a cluster of our own is made of. `folder` None: a temporary one, deleted at the end."""

    zookeeper: bool = True
    coordinators: int = 1
    api: bool = True
    bell: bool = True
    folder: Path | None = None
    postgres: Mapping[str, str] = field(default_factory=dict)
    """PostgreSQL settings that go before ours."""
    coordinator: Mapping[str, Any] = field(default_factory=dict)
    """Fields of CoordinatorSettings."""


@contextmanager
def own_cluster(plan: ClusterPlan, progress: Progress) -> Iterator[OwnCluster]:
    """A migrated cluster with partitions made and no workers yet."""
    with ExitStack() as stack:
        if plan.folder is None:
            folder = Path(tempfile.mkdtemp(prefix="ringcron-loadtest-"))
            folder.chmod(0o755)  # PostgreSQL gives up root before it enters its data folder
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(remove, folder / "postgres")
        else:
            folder = plan.folder
            folder.mkdir(parents=True, exist_ok=True)
        cluster = OwnCluster(plan, folder, progress)
        stack.callback(cluster.close)
        cluster.start()
        yield cluster


class OwnCluster:
    """See `own_cluster`. `workers` are those that were started and not stopped by `stop_workers`."""

    handler: Final = HANDLER
    own: Final = True
    blind_spots: Final[Sequence[str]] = ()

    def __init__(self, plan: ClusterPlan, folder: Path, progress: Progress) -> None:
        self.plan = plan
        self.folder = folder
        self.workers: list[Program] = []
        self.coordinators: list[Program] = []
        self.api: Program | None = None
        self.api_url = ""
        self.api_key: str | None = None
        self.worker_start_seconds: list[float] = []
        """How long each wave of workers took until it had reported itself, divided by its size."""
        self.rebalance_seconds = 0.0
        """How long the ring took to be shared out after the last of the workers started last had reported itself."""
        self._progress = progress
        self._clock = SystemClock()
        self._postgres = PostgresServer(folder / "postgres", settings={**POSTGRES_SETTINGS, **plan.postgres})
        self._zookeeper = ZooKeeperServer(folder / "zookeeper") if plan.zookeeper else None
        self._database: Database | None = None
        self._launcher: Launcher | None = None
        self._started = 0
        starts = folder / "starts"
        shutil.rmtree(starts, ignore_errors=True)
        starts.mkdir()
        self._starts_folder = starts
        self.starts = StartLogs(starts)

    @property
    def database_url(self) -> str:
        return self._postgres.url

    @property
    def database(self) -> Database:
        """The harness's connection."""
        assert self._database is not None
        return self._database

    @property
    def postgres_pid(self) -> int:
        assert self._postgres.process is not None
        return self._postgres.process.pid

    @property
    def zookeeper_hosts(self) -> str:
        return "none" if self._zookeeper is None else self._zookeeper.hosts

    def start(self) -> None:
        """Servers, schema, coordinators with their partitions, API. Raises LocalServerError, ClusterError."""
        self._progress.say("starting PostgreSQL" + ("" if self._zookeeper is None else " and ZooKeeper"))
        self._postgres.start()
        if self._zookeeper is not None:
            self._zookeeper.start()
        self._progress.say("migrating, starting coordinator and API")
        asyncio.run(migrate(self.database_url))
        self._database = Database(self.database_url)
        self._database.run("create_statement_statistics")
        self._launcher = Launcher(self.folder / "logs", database_url=self.database_url, zookeeper=self.zookeeper_hosts)
        if self._zookeeper is not None:
            for number in range(1, self.plan.coordinators + 1):
                name = f"coordinator-{number}"
                self.coordinators.append(self._launcher.start("coordinator", name, **self.plan.coordinator))
            self._until(
                lambda: self.database.value("count_partitions") >= CARVED_DAYS, "the coordinator has made partitions"
            )
        if self.plan.api:
            self.start_api()

    def start_api(self, *, bell: bool | None = None) -> None:
        """Start the API, or start it again with or without the bell."""
        assert self._launcher is not None
        if self.api is not None:
            self.api.end()
        rings = self.plan.bell if bell is None else bell
        port = free_port()
        self.api = self._launcher.start("api", "api", port=port, bell="listen" if rings else "poll")
        self.api_url = f"http://127.0.0.1:{port}"
        self._until(lambda: _answers(port), "the API answers")

    def start_workers(
        self,
        count: int,
        *,
        concurrency: int = 1,
        slowness: Mapping[int, float] | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: object,
    ) -> list[Program]:
        """Start `count` more workers in waves and wait until they own the whole ring; the new ones.

        `slowness`: how many times longer the jobs of the worker of that index (0, 1, …) take. `settings` are fields of
        WorkerSettings. Raises ClusterError where a worker ends.
        """
        assert self._launcher is not None
        self._progress.say(f"starting {count} workers")
        started: list[Program] = []
        while len(started) < count:
            began = self._clock.elapsed()
            wave = min(WAVE, count - len(started))
            for _ in range(wave):
                self._started += 1
                started.append(
                    self._launcher.start(
                        "worker",
                        f"worker-{self._started}",
                        environment={
                            FOLDER_VARIABLE: str(self._starts_folder),
                            SLOWNESS_VARIABLE: str((slowness or {}).get(len(started), 1.0)),
                            **(environment or {}),
                        },
                        **{
                            "handlers": ("loadtest.handlers",),
                            "concurrency": concurrency,
                            "bell": "listen" if self.plan.bell else "poll",
                            "drain_seconds": 2,
                            **settings,
                        },
                    )
                )
            self.workers += started[-wave:]
            names = {worker.name for worker in started}
            self._until(lambda names=names: names <= self._reported(), "the workers have reported themselves")  # type: ignore[misc]
            self.worker_start_seconds.append((self._clock.elapsed() - began) / wave)
            self._progress.count("workers started", len(started), count)
        self.rebalance_seconds = self.until_assigned()
        return started

    def until_assigned(self) -> float:
        """Wait until the running workers, and they alone, share the whole ring at one epoch; how long that took."""
        self._progress.say("waiting until they share the ring")
        began = self._clock.elapsed()
        seconds = SERVING_SECONDS + SERVING_SECONDS_A_WORKER * len(self.workers)
        self._until(self._assigned, "the workers own the whole ring", seconds=seconds)
        return self._clock.elapsed() - began

    def stop_workers(self, workers: Sequence[Program] | None = None) -> None:
        """Drain these workers, all of them by default, and wait for their ends."""
        leaving = list(self.workers if workers is None else workers)
        for worker in leaving:
            worker.resume()
            worker.drain()
        for worker in leaving:
            worker.end()
        self.workers = [worker for worker in self.workers if worker not in leaving]

    def close(self) -> None:
        """Stop everything, PostgreSQL last."""
        self._progress.say("stopping the cluster")
        programs = [*self.workers, *self.coordinators, *([] if self.api is None else [self.api])]
        for program in programs:
            if program.running:
                program.process.kill()
        for program in programs:
            program.process.wait()
        if self._database is not None:
            self._database.close()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        self._postgres.stop()

    def holdings(self) -> list[Holding]:
        """What each worker that reported lately holds."""
        return [Holding(*row) for row in self.database.run("list_holdings", handler=HANDLER, seconds=REPORTED_SECONDS)]

    def _reported(self) -> set[str]:
        return {one.name for one in self.holdings()}

    def _assigned(self) -> bool:
        expected = {worker.name for worker in self.workers if worker.running}
        found = [one for one in self.holdings() if one.name in expected]
        if {one.name for one in found} != expected:
            return False
        if self._zookeeper is None:
            return True
        return len({one.epoch for one in found}) == 1 and sum(one.slots for one in found) == SLOT_COUNT

    def _until(self, condition: Callable[[], bool], what: str, *, seconds: float = SERVING_SECONDS) -> None:
        deadline = self._clock.elapsed() + seconds
        while not condition():
            for program in [*self.coordinators, *self.workers, *([] if self.api is None else [self.api])]:
                if not program.running:
                    raise ClusterError(f"{program.name} has ended:\n{program.log_end()}")
            if self._clock.elapsed() > deadline:
                raise ClusterError(f"not within {seconds:.0f} s: {what}; logs: {self.folder / 'logs'}")
            time.sleep(LOOK_SECONDS)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
