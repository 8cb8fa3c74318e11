"""The cluster that faults are made in: PostgreSQL, ZooKeeper, coordinators, workers, the API and the sink.

Invariants: everything is a real process, started from the main thread, and is gone when the context ends. A program
that ended without a nemesis is started again by `revive`, as any supervisor would, and counted. Names and ports stay
the same over restarts.

Commits survive the death of any process (synchronous_commit is on); only fsync is off, which matters for a machine that
loses its power, and no nemesis does that.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from loadtest.chaos.disk import mounted
from loadtest.chaos.faketime import fake_clock
from loadtest.chaos.handlers import ASYNC
from loadtest.chaos.namespaces import Namespaces
from loadtest.chaos.plan import ArenaPlan
from loadtest.chaos.quorum import ZooKeepers
from loadtest.chaos.sink import ADDRESS_VARIABLE
from loadtest.chaos.standby import REPLICATION, Succession
from loadtest.chaos.steering import Steering
from loadtest.chaos.truth import Said, install_audit
from loadtest.chaos.wiring import LOOPBACK, Wiring
from loadtest.cluster.errors import ClusterError
from loadtest.cluster.holdings import Holding, share_ring
from loadtest.cluster.programs import SEARCH_PATH, Launcher, Program
from loadtest.database import Database
from loadtest.progress import Progress
from ringcron.clock import SystemClock
from ringcron.failpoints import VARIABLE
from ringcron.local.errors import NotAvailable
from ringcron.local.postgres import PostgresServer, remove
from ringcron.local.processes import free_port, launch
from ringcron_sql.migrate import migrate

POSTGRES_SETTINGS: Final[Mapping[str, str]] = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "fsync": "off",
    "autovacuum_naptime": "10s",
}
START_SECONDS: Final = 180.0
LOOK_SECONDS: Final = 0.1
CARVED_DAYS: Final = 10
REPORTED_SECONDS: Final = 6.0


@contextmanager
def arena(plan: ArenaPlan, progress: Progress) -> Iterator[Arena]:
    """A cluster with its ring shared out and every change of a job recorded."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="ringcron-chaos-"))
        folder.chmod(0o755)  # PostgreSQL gives up root before it enters its data folder
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(remove, folder / "postgres")
        made = Arena(plan, folder, progress, _separated(plan, stack, progress))
        stack.callback(made.close)
        made.start()
        yield made


class Arena:
    """See `arena`. `down` holds the names that a nemesis keeps down: `revive` leaves them alone."""

    def __init__(self, plan: ArenaPlan, folder: Path, progress: Progress, namespaces: Namespaces | None) -> None:
        self.plan = plan
        self.folder = folder
        self.workers: dict[str, Program] = {}
        self.coordinators: dict[str, Program] = {}
        self.api: Program | None = None
        self._address = LOOPBACK if namespaces is None else namespaces.address
        """Where workers reach what they need."""
        listen = {} if namespaces is None else {"listen_addresses": f"{LOOPBACK},{self._address}"}
        settings = {**POSTGRES_SETTINGS, **listen, **(REPLICATION if plan.replicated else {})}
        self.fake_clock = fake_clock(folder / "clock") if plan.fake_clock else None
        """PostgreSQL's, where it can be stepped."""
        environment = {} if self.fake_clock is None else self.fake_clock.environment
        self.postgres = PostgresServer(folder / "postgres", settings=settings, environment=environment)
        """The server that takes writes."""
        self.succession = Succession(folder, self.postgres, settings, replicated=plan.replicated)
        self.abandoned: list[Said] = []
        """What servers said that took acknowledged commits with them, oldest first."""
        self.zookeeper = ZooKeepers(folder / "zookeeper", count=plan.zookeepers, address=self._address)
        self.wiring = Wiring(
            database_url=lambda: self.succession.url(self.postgres),
            zookeeper=self.zookeeper,
            namespaces=namespaces,
            steering=None,
        )
        self.down: set[str] = set()
        self.revived: list[str] = []
        """What ended by itself, with the end of its log."""
        self.sink_file = folder / "sink.jsonl"
        self.api_port = 0
        self._clock = SystemClock()
        self._progress = progress
        self._database: Database | None = None
        self._launcher: Launcher | None = None
        self.disk: Path | None = None
        """The disk of PostgreSQL's own, if it has one."""
        self.builds: dict[str, str] = {}
        """PYTHONPATH of programs that are to run another build, by name."""
        self._sink: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def database(self) -> Database:
        """The harness's own connection, past every proxy. It is opened again where the server has cut it."""
        if self._database is None:
            self._database = Database(self.postgres.url)
        return self._database

    def replace_postgres(self, successor: PostgresServer) -> None:
        """Another server takes writes from now on. Programs that know two addresses find it; the proxy is turned."""
        self.forget_database()
        self.postgres = successor
        if self.disk is not None:
            self.disk = self.succession.disk_of(successor)
        self.wiring.turn(["api", *self.workers], successor.port)

    def forget_database(self) -> None:
        """The server is going away, or has: the next use opens a new connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def asked(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement; none while the database cannot be reached."""
        try:
            return self.database.run(name, **parameters)
        except psycopg.Error:
            self.forget_database()
            return []

    def start(self) -> None:
        """Everything, until the workers own the ring. Raises LocalServerError, ClusterError."""
        self._progress.say("starting PostgreSQL, ZooKeeper and the sink")
        if self.plan.small_disk:
            self.disk = mounted(self.folder / "postgres")
        self.postgres.start()
        if self.wiring.namespaces is not None:
            self._let_in(self.wiring.namespaces)
        self.zookeeper.start()
        asyncio.run(migrate(self.postgres.url))
        install_audit(self.database)
        self._start_sink()
        if self.plan.proxied or (self.plan.separable and self.wiring.namespaces is None):
            self._start_proxy()
        self._launcher = Launcher(
            self.logs, database_url=self.succession.url(self.postgres), zookeeper=self.zookeeper.hosts
        )
        self._progress.say(
            f"starting {self.plan.coordinators} coordinators, {self.plan.workers} workers (leases of "
            f"{self.plan.lease:g} s, sessions of {self.plan.session:g} s) and the API"
        )
        for number in range(1, self.plan.coordinators + 1):
            self.start_coordinator(f"coordinator-{number}")
        self.until(lambda: self.database.value("count_partitions") >= CARVED_DAYS, "partitions are made")
        self.api_port = free_port()
        self.start_api()
        for number in range(1, self.plan.workers + 1):
            self.start_worker(f"worker-{number}")
        self.until(lambda: _answers(self.api_port), "the API answers")
        self.until(self.is_shared_out, "the workers own the ring")

    def start_worker(self, name: str, *, environment: Mapping[str, str] | None = None) -> None:
        """Start that worker, or start it again."""
        self.workers[name] = self._start(
            "worker",
            name,
            environment=environment,
            handlers=("loadtest.chaos.handlers",),
            concurrency=self.plan.concurrency,
            lease_seconds=self.plan.lease,
            poll_seconds=self.plan.poll,
            drain_seconds=3,
        )

    def start_coordinator(self, name: str, *, failpoints: str = "") -> None:
        """Start that coordinator, or start it again; it ends at a failpoint if it is told one."""
        self.coordinators[name] = self._start(
            "coordinator",
            name,
            environment={VARIABLE: failpoints},
            quiet_seconds=1,
            quiet_cap_seconds=5,
            ack_seconds=3,
            upkeep_seconds=5,
        )

    def start_api(self) -> None:
        """Start the API, or start it again, on its port."""
        self.api = self._start("api", "api", port=self.api_port, pool_size=8)

    @property
    def proxy_counts(self) -> dict[str, int]:
        """What the proxy has counted; nothing where there is none."""
        return {} if self.wiring.steering is None else self.wiring.steering.tell()

    def start_members(self, prefix: str, count: int) -> subprocess.Popen[bytes]:
        """So many members that claim nothing, in one process; whoever starts it ends it."""
        return self._launch("members", self.zookeeper.hosts, prefix, str(count))

    def programs(self) -> list[Program]:
        return [*self.workers.values(), *self.coordinators.values(), *([] if self.api is None else [self.api])]

    def revive(self) -> None:
        """Start again what has ended by itself."""
        for program in self.programs():
            if program.running or program.name in self.down:
                continue
            self.revived.append(f"{program.name} (exit code {program.process.returncode}): {program.log_end()[-600:]}")
            self.restart(program.name)

    def restart(self, name: str, *, failpoints: str = "") -> None:
        """Start a program of that name again; the old one has ended. `failpoints` are for coordinators."""
        self.down.discard(name)
        if name in self.workers:
            self.start_worker(name)
        elif name in self.coordinators:
            self.start_coordinator(name, failpoints=failpoints)
        else:
            self.start_api()

    def is_shared_out(self) -> bool:
        """Whether the running workers, each in its present incarnation, own the whole ring at one epoch."""
        return share_ring(self.holdings(), {name for name, worker in self.workers.items() if worker.running})

    def holdings(self) -> list[Holding]:
        """What each worker that reported lately holds; nothing while the database cannot be reached."""
        return [Holding(*row) for row in self.asked("list_holdings", handler=ASYNC, seconds=REPORTED_SECONDS)]

    def until(self, condition: Callable[[], bool], what: str, *, seconds: float = START_SECONDS) -> None:
        """Wait for it. Raises ClusterError after `seconds`, or where a program has ended."""
        deadline = self._clock.elapsed() + seconds
        while not condition():
            for program in self.programs():
                if not program.running:
                    raise ClusterError(f"{program.name} has ended:\n{program.log_end()}")
            if self._clock.elapsed() > deadline:
                raise ClusterError(f"not within {seconds:.0f} s: {what}")
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Stop everything, PostgreSQL last."""
        for program in self.programs():
            if program.running:
                program.process.kill()
            program.process.wait()
        steering = self.wiring.steering
        for process in (self._sink, None if steering is None else steering.process):
            if process is not None:
                process.kill()
                process.wait()
        self.forget_database()
        self.zookeeper.kill()
        self.postgres.stop()
        self.succession.close()

    def _start(
        self, kind: str, name: str, *, environment: Mapping[str, str] | None = None, **settings: object
    ) -> Program:
        assert self._launcher is not None
        build = {"PYTHONPATH": self.builds[name]} if name in self.builds else {}
        return self._launcher.start(
            kind,
            name,
            self.wiring.within(kind, name),
            environment={**self._environment, **build, **(environment or {})},
            session_seconds=self.plan.session,
            **{**self.wiring.addresses(kind, name), **settings},
        )

    def _let_in(self, namespaces: Namespaces) -> None:
        """PostgreSQL asks who comes from a namespace for the password, too."""
        assert self.postgres.process is not None
        with (self.folder / "postgres" / "data" / "pg_hba.conf").open("a", encoding="utf-8") as file:
            file.write(f"host all all {namespaces.network} scram-sha-256\n")
        self.postgres.process.send_signal(signal.SIGHUP)

    def _start_proxy(self) -> None:
        targets = {"api/postgres": (self.postgres.port, True)}
        for number in range(1, self.plan.workers + 1):
            targets[f"worker-{number}/postgres"] = self.postgres.port, True
            for port in self.zookeeper.ports:
                targets[f"worker-{number}/zookeeper/{port}"] = port, False
        self.wiring.steering = Steering(self._address, targets, self._environment, self.folder / "proxy.log")

    def _start_sink(self) -> None:
        port = free_port()
        self._environment = {ADDRESS_VARIABLE: f"{self._address}:{port}", "PYTHONPATH": SEARCH_PATH}
        self._sink = self._launch("sink", self._address, str(port), str(self.sink_file))

    def _launch(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A program of this package."""
        return launch(
            [sys.executable, "-P", "-m", f"loadtest.chaos.{module}", *arguments],
            environment={**os.environ, **self._environment},
            log=self.folder / f"{module}.log",
        )


def _separated(plan: ArenaPlan, stack: ExitStack, progress: Progress) -> Namespaces | None:
    """Namespaces for the workers, where they are wanted and this machine has them; else the proxy stands in."""
    if not (plan.separable and plan.namespaces):
        return None
    try:
        return stack.enter_context(Namespaces([f"worker-{number}" for number in range(1, plan.workers + 1)]))
    except NotAvailable as error:
        progress.say(f"no network namespaces, the proxy stands in: {error}")
        return None


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
