"""The world of one seed: the machines, the network between them, the two servers, and what fails of it.

Invariant: everything that happens here is drawn from the plan's seed. Nothing of the programs' own is replaced but what
they reach through kazoo, psycopg, the guard and the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final
from uuid import UUID

import psycopg

from tests.simulation.database import Database, Row
from tests.simulation.event_loop import EventLoop
from tests.simulation.kazoo_client import Answer, KazooClient
from tests.simulation.plan import JobPlan, Plan
from tests.simulation.process import Exited, Process
from tests.simulation.psycopg_connection import Connection
from tests.simulation.referee import Referee, Violation
from tests.simulation.zookeeper import SessionEntry, ZooKeeper

BASE: Final = datetime(2026, 12, 1, 23, 59, 50, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the trace."""

    at: float
    what: str
    who: str
    text: str
    subject: str

    def __str__(self) -> str:
        return f"{self.at:8.3f}  {self.who:16} {self.what:10} {self.text}"


class World:
    """Programs find it by the process that they run in."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.base = BASE
        self.random = Random(plan.seed)
        self.loop = EventLoop(self._fault_of_ours)
        self.referee = Referee(self)
        self.database = Database(self.database_now, self.referee)
        self.zookeeper = ZooKeeper(self.referee.wrote)
        self.violation: Violation | None = None
        self.broken: BaseException | None = None
        self.entries: list[Entry] = []
        self.inserted: dict[UUID, JobPlan] = {}
        self.seats: dict[str, Process | None] = {}
        self.processes: list[Process] = []
        self.start_worker: Callable[[World, str], Process]
        self.start_coordinator: Callable[[World, str], Process]
        self.step_seconds = 0.0
        self.zookeeper_factor = self.database_factor = 1.0
        self.loss_share = 0.0
        self.zookeeper_frozen = self.zookeeper_down = False
        self.database_frozen = self.database_down = False
        self.cut_from_zookeeper: set[str] = set()
        self.cut_from_database: set[str] = set()
        self.robbed_at: dict[str, float] = {}
        """When a process was last deprived of its session or node by hand."""
        self.kazoo_clients: list[KazooClient] = []
        self._connections: list[Connection] = []
        self._at_zookeeper: list[tuple[Any, ...]] = []
        self._at_database: list[tuple[Any, ...]] = []

    # --- what is told ---

    def trace(self, what: str, who: object, text: str, subject: object = "") -> None:
        self.entries.append(Entry(self.loop.now, what, str(who), text, str(subject)))

    def violated(self, violation: Violation) -> None:
        if self.violation is None:
            self.violation = violation
            self.loop.ended = True

    def _fault_of_ours(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "handle" in context and self.broken is None and not isinstance(error, Exited):
            self.broken = error
            self.loop.ended = True

    # --- processes ---

    def new_process(self, seat: str) -> Process:
        process = Process(
            f"{seat}.{self.random.getrandbits(32):08x}",
            self,
            lambda: self.loop.now,
            offset_seconds=self.random.uniform(1000, 90000),
            rate=1 + self.random.uniform(-2e-4, 2e-4),
        )
        self.seats[seat] = process
        self.processes.append(process)
        process.at_death.append(lambda: self._died(process))
        self.trace("start", process.id, "")
        return process

    def _died(self, process: Process) -> None:
        self.trace("gone", process.id, "")
        for connection in self._connections:
            if connection.process is process:
                connection.closed = True
        self._connections = [one for one in self._connections if one.process is not process]

    def start(self, seat: str) -> None:
        """Start a program in a seat that is free."""
        process = self.seats.get(seat)
        if process is None or not process.alive:
            (self.start_worker if seat.startswith("w") else self.start_coordinator)(self, seat)

    def living_workers(self) -> list[Process]:
        return [process for seat, process in self.seats.items() if process and process.alive and seat.startswith("w")]

    # --- jobs ---

    def insert(self, job: JobPlan) -> None:
        id = UUID(int=(0x7 << 76) | (0b10 << 62) | (job.number + 1))
        at = self.base + timedelta(seconds=round(job.at, 3))
        now = self.database_now()
        anchor = f'"every":"PT{job.every}S","anchor":"{at.isoformat()}","startAt":"{at.isoformat()}"'
        self.inserted[id] = job
        self.database.insert(
            Row(
                id=id,
                slot=job.slot,
                handler=job.handler,
                next_run_at=max(at, now) if job.every is None else at,
                scheduled_for=at,
                decided_until=min(at, now) - timedelta(microseconds=1),
                payload=f'{{"seconds":{job.seconds},"failures":{job.failures},"stubborn":{job.stubborn}}}',
                schedule=None if job.every is None else f"{{{anchor}}}",
                run_at=at if job.every is None else None,
                inline=job.slot % 4 != 0,
                overlap=job.overlap,
                catchup=job.catchup,
            )
        )

    # --- ZooKeeper's side of the network ---

    def zookeeper_delay(self) -> float:
        return self.random.uniform(0.0005, 0.008) * self.zookeeper_factor

    def reaches_zookeeper(self, process: Process) -> bool:
        if self.zookeeper_down or self.zookeeper_frozen or not process.alive:
            return False
        return process.id not in self.cut_from_zookeeper

    def at_zookeeper(
        self, client: KazooClient, session: SessionEntry, request: Callable[[SessionEntry], Any], answer: Answer
    ) -> None:
        """A request arrives, unless the way is cut."""
        if client._process.id in self.cut_from_zookeeper or self.zookeeper_down:
            return
        if self.zookeeper_frozen:
            self._at_zookeeper.append((client, session, request, answer))
        else:
            client.carry_out(session, request, answer)

    def watch_session(self, session: SessionEntry, client: KazooClient) -> None:
        self.kazoo_clients.append(client)
        self.loop.after(session.seconds, self._look_at_session, session, client)

    def _look_at_session(self, session: SessionEntry, client: KazooClient) -> None:
        if session.ended:
            return
        now = self.loop.now
        if client._session is session and client.reaches_server():
            session.heard_at = now
        if self.zookeeper_frozen or self.zookeeper_down:
            self.loop.after(0.2, self._look_at_session, session, client)
        elif now >= session.heard_at + session.seconds:
            self.expire(session, client)
        else:
            self.loop.after(session.heard_at + session.seconds - now + 1e-6, self._look_at_session, session, client)

    def expire(self, session: SessionEntry, client: KazooClient) -> None:
        """The server ends a session and its connection."""
        self.trace("expired", client._process.id, f"session {session.id}")
        self.zookeeper.end_session(session)
        client.cut_off(self.random.uniform(0.001, 0.1))

    def freeze_zookeeper(self, frozen: bool) -> None:
        self.zookeeper_frozen = frozen
        if not frozen:
            waiting, self._at_zookeeper = self._at_zookeeper, []
            for client, session, request, answer in waiting:
                client.carry_out(session, request, answer)
            if self.random.random() < 0.5:
                self._grant_sessions_anew()

    def stop_zookeeper(self, down: bool) -> None:
        self.zookeeper_down = down
        if not down:
            self._grant_sessions_anew()

    def _grant_sessions_anew(self) -> None:
        """A server that starts gives every session its whole timeout."""
        for session in self.zookeeper.sessions.values():
            session.heard_at = self.loop.now

    # --- the database's side of the network ---

    def database_now(self) -> datetime:
        return self.base + timedelta(seconds=self.loop.now + self.step_seconds)

    def database_delay(self) -> float:
        slow = 1.0 if self.plan.database_is_fast else 15.0
        return self.random.uniform(0.0005, 0.006) * slow * self.database_factor

    def connect(self, connection: Connection, settle: Any) -> None:
        self._connections.append(connection)
        self.loop.after(self.database_delay(), self._at_listener, connection, settle)

    def _at_listener(self, connection: Connection, settle: Any) -> None:
        if connection.process.id in self.cut_from_database or self.database_frozen:
            return
        if self.database_down:
            settle.fail(psycopg.OperationalError("connection refused"))
        else:
            settle.answer(None)

    def send(self, connection: Connection, statement: str, parameters: Any, settle: Any) -> None:
        self.loop.after(self.database_delay(), self._at_server, connection, statement, parameters, settle)

    def _at_server(self, connection: Connection, statement: str, parameters: Any, settle: Any) -> None:
        if connection.process.id in self.cut_from_database:
            return
        if self.database_frozen:
            self._at_database.append((connection, statement, parameters, settle))
            return
        if self.database_down or self.random.random() < self.loss_share / 2:
            connection.cut()
            return
        if self.loss_share and self.random.random() < 0.1:
            settle.fail(psycopg.errors.SerializationFailure("the row was moved to another partition"))
            return
        rows = self.database.execute(statement, parameters)
        self.loop.after(self.database_delay(), self._answer, connection, rows, settle)

    def _answer(self, connection: Connection, rows: Any, settle: Any) -> None:
        if connection.process.id in self.cut_from_database:
            return
        if self.loss_share and self.random.random() < self.loss_share:
            connection.cut()
        else:
            settle.answer(rows)

    def freeze_database(self, frozen: bool) -> None:
        """What was sent to a frozen server is carried out when it goes on, whoever still waits for it."""
        self.database_frozen = frozen
        if not frozen:
            waiting, self._at_database = self._at_database, []
            for one in waiting:
                self._at_server(*one)

    def stop_database(self, down: bool) -> None:
        self.database_down = down
        if down:
            connections, self._connections = self._connections, []
            for connection in connections:
                connection.cut()
