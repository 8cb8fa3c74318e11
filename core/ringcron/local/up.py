"""`ringcron up`: PostgreSQL, ZooKeeper, coordinators, workers and the API on this machine, and their ends.

Invariants: the parent alone starts and ends things, and holds nothing that matters (jobs live in PostgreSQL); what it
starts is gone when it is gone, however it ended. up.json is written when every program serves, and taken away at the
end. Startup is all or nothing: a program that ends before everything serves ends the rest, and its log is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ringcron import readers, service
from ringcron.clock import SystemClock
from ringcron.errors import ConfigError
from ringcron.local import samples
from ringcron.local.data_folder import DataFolder
from ringcron.local.errors import LocalServerError, NotAvailable
from ringcron.local.handler_modules import check_handlers
from ringcron.local.postgres import PostgresServer
from ringcron.local.processes import free_port, is_free
from ringcron.local.programs import Programs
from ringcron.local.report import Addresses, announcement, up_document
from ringcron.local.rest import ApiUnavailable, KeyNeeded, Rest
from ringcron.local.supervisor import Child, Supervisor
from ringcron.local.zookeeper import ZooKeeperServer
from ringcron.settings import WorkerSettings
from ringcron_sql.migrate import migrate

SERVING_SECONDS: Final = 60.0
SERVING_SECONDS_A_WORKER: Final = 2.0
"""A small machine takes so long to start one more process beside the others."""
LOOK_SECONDS: Final = 0.1
SERVERS, COORDINATORS, WORKERS, API = range(4)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpOptions:
    """What `ringcron up` is told. `zookeeper` and `database` None: servers of our own; `zookeeper` "none": without."""

    workers: int
    concurrency: int
    coordinators: int
    handlers: tuple[str, ...]
    default_handler: str
    allow_commands: bool
    api_port: int
    data_folder: Path
    fresh: bool
    sample: bool
    zookeeper: str | None
    database: str | None
    api_key: str | None = None
    found: bool = True
    """Whether the commands find this one by themselves, from the folder that it is started in."""


def run(options: UpOptions) -> int:
    """Start everything, stay until asked to stop, stop everything; the exit code.

    Raises ConfigError before anything is made, LocalServerError.
    """
    _check_addresses(options)
    check_handlers(options.handlers)
    with DataFolder(options.data_folder) as folder:  # first: it tells of another `ringcron up` here
        if options.api_port and not is_free(options.api_port):
            raise LocalServerError(
                f"port {options.api_port} is in use: stop what listens there, or choose another by --api-port"
            )
        if options.fresh:
            folder.clear()
        folder.turn_logs()
        return asyncio.run(Up(options, folder).run())


def _check_addresses(options: UpOptions) -> None:
    """Raises ConfigError where a given address cannot be one."""
    faults: list[str] = []
    try:
        readers.database_url(options.database or "postgresql://none")
    except ValueError as error:
        faults.append(f"--database {error}")  # it may hold a password, and is not repeated
    try:
        readers.optional(readers.zookeeper)(options.zookeeper or "none")
    except ValueError as error:
        faults.append(f"--zookeeper: {options.zookeeper!r} {error}")
    if faults:
        raise ConfigError(faults)


class Up:
    """One run of `ringcron up`."""

    def __init__(self, options: UpOptions, folder: DataFolder) -> None:
        self._options = options
        self._folder = folder
        self._clock = SystemClock()
        self._supervisor = Supervisor(self._clock, say=say, changed=self._write_up_file)
        self._serving_seconds = SERVING_SECONDS + SERVING_SECONDS_A_WORKER * options.workers
        self._addresses: Addresses | None = None
        worker = WorkerSettings.load(os.environ, database_url="postgresql://none", zookeeper="none", name="any")
        self._drain_seconds = worker.drain_seconds

    async def run(self) -> int:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if sign != signal.SIGHUP or signal.getsignal(sign) != signal.SIG_IGN:  # nohup means what it says
                loop.add_signal_handler(sign, self._asked_to_stop, asked)
        starting = asyncio.create_task(self._start())
        waiting = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await waiting
        finally:
            self._folder.forget()
            for task in (starting, waiting):
                task.cancel()
            await asyncio.gather(starting, waiting, return_exceptions=True)
            await self._supervisor.stop()
        say("everything has stopped")
        return service.OK

    def _asked_to_stop(self, asked: asyncio.Event) -> None:
        if asked.is_set():
            self._supervisor.kill()
            return
        asked.set()
        say(f"stopping: runs in progress get {self._drain_seconds:g} s to finish; once more, and everything is killed")

    async def _start(self) -> None:
        options = self._options
        database_url = options.database or await self._start_postgres()
        zookeeper = options.zookeeper or await self._start_zookeeper()
        try:
            for sentence in await migrate(database_url):
                say(sentence)
        except Exception as error:  # psycopg's errors, which only the store knows by name, are told like any other
            raise LocalServerError(f"the database cannot be migrated: {str(error).strip()}") from error
        port = options.api_port or free_port()
        rest = Rest(port, options.api_key)
        programs = Programs(
            self._folder,
            database_url=database_url,
            zookeeper=zookeeper,
            concurrency=options.concurrency,
            handlers=options.handlers,
            default_handler=options.default_handler,
            allow_commands=options.allow_commands,
        )
        for number in range(1, options.coordinators + 1):
            await self._supervisor.start(programs.coordinator(f"coordinator-{number}", COORDINATORS))
        for number in range(1, options.workers + 1):
            await self._supervisor.start(programs.worker(f"worker-{number}", WORKERS))
        await self._supervisor.start(programs.api("api", API, port, rest), seconds=self._serving_seconds)
        try:
            await self._until_serving(rest, assigned=zookeeper != "none")
            if options.sample:
                await asyncio.to_thread(samples.put_in, rest, self._clock.wall())
        except KeyNeeded:
            say("the API asks for a key (RINGCRON_API_KEY): workers are not waited for, no sample jobs are put in")
        self._addresses = Addresses(port=port, database_url=database_url, zookeeper=zookeeper)
        self._supervisor.keep()
        self._write_up_file()
        children = self._supervisor.children
        print(
            announcement(self._addresses, self._folder, children, options.concurrency, found=options.found), flush=True
        )

    async def _start_postgres(self) -> str:
        settings = {"max_connections": str(200 + 8 * self._options.workers)}
        server = PostgresServer(self._folder.postgres, settings=settings)
        await self._supervisor.start(
            Child(
                role="postgres",
                name="postgres",
                stage=SERVERS,
                spawn=server.spawn,
                is_ready=server.is_ready,
                log=server.log,
                stop_signal=signal.SIGINT,
                kill_signal=signal.SIGQUIT,
            )
        )
        say(f"PostgreSQL {server.major} serves on 127.0.0.1:{server.port}")
        return server.url

    async def _start_zookeeper(self) -> str:
        try:
            server = ZooKeeperServer(self._folder.zookeeper)
        except NotAvailable as error:
            raise NotAvailable(f"{error}\n(or do without ZooKeeper: --zookeeper none)") from error
        await self._supervisor.start(
            Child(
                role="zookeeper",
                name="zookeeper",
                stage=SERVERS,
                spawn=server.spawn,
                is_ready=server.is_ready,
                log=server.log,
            )
        )
        say(f"ZooKeeper serves on {server.hosts}")
        return server.hosts

    async def _until_serving(self, rest: Rest, *, assigned: bool) -> None:
        """Wait until all workers have reported themselves and own the whole ring."""
        deadline = self._clock.elapsed() + self._serving_seconds
        while not await asyncio.to_thread(_serving, rest, workers=self._options.workers, assigned=assigned):
            self._supervisor.check()
            if self._clock.elapsed() > deadline:
                raise LocalServerError(
                    f"after {self._serving_seconds:.0f} s the workers do not own the whole ring yet; "
                    f"see {self._folder.logs}"
                )
            await asyncio.sleep(LOOK_SECONDS)

    def _write_up_file(self) -> None:
        if self._addresses is not None:
            self._folder.announce(up_document(self._addresses, self._supervisor.children))


def _serving(rest: Rest, *, workers: int, assigned: bool) -> bool:
    """Whether so many workers have reported themselves and, if `assigned`, every slot has an owner."""
    try:
        status, answer = rest.call("GET", "/workers?limit=500")
        if status != 200 or len(answer["items"]) < workers:
            return False
        if not assigned:
            return True
        status, shards = rest.call("GET", "/shards")
        return status == 200 and not shards["unowned"]
    except ApiUnavailable:
        return False


def say(sentence: str) -> None:
    """One line for the person at the terminal; whoever has closed it needs none, and everything goes on."""
    with contextlib.suppress(OSError):
        print(f"ringcron: {sentence}", flush=True)
