"""ringcron as a contestant: coordinator, API and workers as a user starts them, with leases and run history."""

from __future__ import annotations

import asyncio
import http.client
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from loadtest.cluster.holdings import REPORTED_SECONDS
from loadtest.cluster.programs import Launcher, Program
from loadtest.compare.contestants import READY_SECONDS, Broken, Kind, Site
from loadtest.database import Database
from loadtest.handlers import HANDLER
from loadtest.peers.protocol import Order
from ringcron import __version__
from ringcron.clock import SystemClock
from ringcron.local.processes import free_port
from ringcron.slots import SLOT_COUNT
from ringcron.store.pool import Pool
from ringcron.store.upkeep import Upkeep
from ringcron_sql.migrate import migrate, migrations

CONCURRENCY: Final = 500
"""Jobs that a worker runs at once: as many as one claim may take, for handlers that hardly take any time."""
BATCH: Final = 5000
"""Jobs of one call of the batch endpoint, which takes up to 10,000."""
DAY: Final = 86400.0
LOOK_SECONDS: Final = 0.05
CALL_SECONDS: Final = 60.0


class Ringcron:
    """`zookeeper` is `host:port`; each run has a chroot of its own there."""

    name: Final = "ringcron"
    kind: Final[Kind] = "ringcron"
    queries: Final = "ringcron"

    def __init__(self, zookeeper: Callable[[], str]) -> None:
        self._zookeeper = zookeeper

    @property
    def edition(self) -> str:
        return schema_edition()

    def install(self) -> Mapping[str, str]:
        return {"ringcron": __version__}

    def build(self, database_url: str) -> None:
        build_schema(database_url)

    def start(self, site: Site, *, workers: int, tasks: bool) -> RingcronCrew:
        del tasks
        crew = RingcronCrew(site, f"{self._zookeeper()}/{site.folder.name}")
        try:
            crew.start(workers)
        except BaseException:
            crew.close()
            raise
        return crew


class RingcronCrew:
    """One coordinator, one API, the workers."""

    def __init__(self, site: Site, zookeeper: str) -> None:
        self._site = site
        self._launcher = Launcher(site.folder, database_url=site.database_url, zookeeper=zookeeper)
        self._clock = SystemClock()
        self._port = free_port()
        self._programs: list[Program] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Start all and wait until the API answers and the workers own the whole ring. Raises Broken."""
        self._programs.append(self._launcher.start("coordinator", "coordinator"))
        self._programs.append(self._launcher.start("api", "api", port=self._port))
        for number in range(1, workers + 1):
            worker = self._launcher.start(
                "worker",
                f"worker-{number}",
                environment=self._site.variables(),
                handlers=("loadtest.compare.handler",),
                concurrency=CONCURRENCY,
            )
            self._programs.append(worker)
            self.workers.append(worker.process)
        with Database(self._site.database_url) as database:
            self._until(lambda: _readiness(self._port) is None, lambda: f"the API: {_readiness(self._port)}")
            self._until(
                lambda: not workers or _share_ring(database, workers), lambda: "the workers do not own the whole ring"
            )

    def enqueue(self, order: Order) -> float:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_SECONDS)
        began = self._clock.elapsed()
        for chunk in order.chunks(BATCH):
            body = orjson.dumps({"jobs": [_document(seq, at) for seq, at in chunk]})
            connection.request("POST", "/jobs/batch", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != http.client.MULTI_STATUS:
                raise Broken(f"the API answered {answer.status}: {text[:500].decode(errors='replace')}")
            results = orjson.loads(text)["results"]
            if refused := [result for result in results if result["status"] != http.client.CREATED]:
                raise Broken(f"the API refused {len(refused)} jobs, the first with {refused[0]}")
        took = self._clock.elapsed() - began
        connection.close()
        return took

    def check(self) -> None:
        for program in self._programs:
            if not program.running:
                raise Broken(f"{program.name} has ended:\n{program.log_end()}")

    def close(self) -> None:
        for program in self._programs:
            program.process.kill()
        for program in self._programs:
            program.process.wait()

    def _until(self, condition: Callable[[], bool], lacking: Callable[[], str]) -> None:
        deadline = self._clock.elapsed() + READY_SECONDS + 2.0 * len(self.workers)
        while not condition():
            self.check()
            if self._clock.elapsed() > deadline:
                raise Broken(f"not ready in time: {lacking()}")
            time.sleep(LOOK_SECONDS)


def build_schema(database_url: str) -> None:
    """Every migration, and the partitions that the coordinator's upkeep makes."""
    asyncio.run(_build_schema(database_url))


def schema_edition() -> str:
    """Of the migrations as they are in this checkout."""
    return " ".join(migration.checksum for migration in migrations())


async def _build_schema(database_url: str) -> None:
    await migrate(database_url)
    pool = Pool(database_url, application_name="ringcron loadtest", max_size=2, seconds=120)
    try:
        upkeep = Upkeep(
            pool,
            SystemClock(),
            days_ahead=14,
            keep_runs_seconds=30 * DAY,
            keep_jobs_seconds=7 * DAY,
            keep_runs_bytes=None,
        )
        await upkeep.step()
    finally:
        await pool.close()


def _document(seq: int, at: float) -> dict[str, Any]:
    run_at = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
    return {"runAt": run_at, "handler": HANDLER, "payload": {"seq": seq}}


def _share_ring(database: Database, workers: int) -> bool:
    rows = database.run("list_holdings", handler=HANDLER, seconds=REPORTED_SECONDS)
    return len(rows) == workers and len({row[2] for row in rows}) == 1 and sum(row[3] for row in rows) == SLOT_COUNT


def _readiness(port: int) -> str | None:
    """None where the API is ready, else what it says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read(2000).decode(errors="replace")
        return None if answer.status == http.client.OK else f"{answer.status} {text}"
    except (OSError, http.client.HTTPException) as error:
        return f"no answer ({error})"
    finally:
        connection.close()
