"""What stands in for kazoo's client: requests, answers, states and watches as kazoo delivers them, over our network.

Invariants: requests arrive in the order in which they were sent and so do answers; a connection that breaks fails what
is in flight, whether or not it was carried out; nothing is ever told while a process is stopped. The session is kept
alive for as long as the process runs and the server can be reached, as kazoo's thread does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kazoo.exceptions import ConnectionLoss, SessionExpiredError, ZookeeperError
from kazoo.protocol.states import KazooState, KeeperState

from tests.simulation.event_loop import this_process
from tests.simulation.process import Process
from tests.simulation.zookeeper import SessionEntry, Write

RECONNECT_SECONDS: Final = (0.1, 1.0)


@dataclass(frozen=True, slots=True)
class Event:
    """A watched event: `path` is None when the connection was lost and the watch with it."""

    path: str | None


class Answer:
    """kazoo's IAsyncResult."""

    def __init__(self) -> None:
        self.value: Any = None
        self.exception: BaseException | None = None
        self.done = False
        self._callback: Callable[[Answer], object] | None = None

    def rawlink(self, callback: Callable[[Answer], object]) -> None:
        self._callback = callback
        if self.done:
            callback(self)

    def settle(self, value: Any, exception: BaseException | None) -> None:
        if not self.done:
            self.done, self.value, self.exception = True, value, exception
            if self._callback is not None:
                self._callback(self)


class KazooClient:
    """One client of one process."""

    def __init__(self, hosts: str, *, timeout: float, **_: Any) -> None:
        self.client_id: tuple[int, bytes] | None = None
        self.client_state = KeeperState.CONNECTING
        self._process: Process = this_process()
        self._world: Any = self._process.world
        self._timeout = timeout
        self._listener: Callable[[KazooState], object] = lambda state: None
        self._session: SessionEntry | None = None
        self._connected = False
        self._stopped = False
        self._waiting: dict[Answer, None] = {}
        self._watching: dict[tuple[Any, ...], Callable[[Any], object]] = {}
        self._arrives_at = self._answers_at = 0.0
        self._process.at_death.append(self._cut)

    def add_listener(self, listener: Callable[[KazooState], object]) -> None:
        self._listener = listener

    # --- the connection ---

    def start_async(self) -> None:
        self._world.loop.post(self._process, self._world.random.uniform(0.005, 0.05), self._connect)

    def _connect(self) -> None:
        if self._stopped or self._connected or self.client_state is KeeperState.CLOSED:
            return
        if not self._world.reaches_zookeeper(self._process):
            self._connect_later()
            return
        now = self._world.loop.now
        if self._session is not None and self._session.ended:
            self._session, self.client_id = None, None
            self._listener(KazooState.LOST)
        if self._session is None:
            self._session = self._world.zookeeper.open_session(self._timeout, now)
            self.client_id = (self._session.id, b"")
            self._world.watch_session(self._session, self)
        self._session.heard_at = now
        self._connected = True
        self.client_state = KeeperState.CONNECTED
        self._listener(KazooState.CONNECTED)

    def _connect_later(self) -> None:
        self._world.loop.post(self._process, self._world.random.uniform(*RECONNECT_SECONDS), self._connect)

    def reaches_server(self) -> bool:
        """Whether the server hears of this session now."""
        return self._connected and self._process.runs and bool(self._world.reaches_zookeeper(self._process))

    def _cut(self) -> None:
        """The server hears of us no more; we may not know yet."""
        if self._session is not None:
            early = self._world.random.uniform(0, self._session.seconds / 3)  # since kazoo's last ping
            self._session.heard_at = max(self._session.heard_at, self._world.loop.now - early)
        self._world.zookeeper.forget_watches(self)

    def cut_off(self, seconds: float) -> None:
        """The connection is dead; the client finds out after `seconds`."""
        if self._connected:
            self._cut()
            self._world.loop.post(self._process, seconds, self._disconnected, self._session)

    def _disconnected(self, session: SessionEntry | None) -> None:
        if not self._connected or self._stopped or session is not self._session:
            return
        self._connected = False
        self.client_state = KeeperState.CONNECTING
        self._listener(KazooState.SUSPENDED)
        self._fail(ConnectionLoss())
        watching, self._watching = self._watching, {}
        self._world.zookeeper.forget_watches(self)
        for callback in watching.values():
            callback(Event(None))
        self._connect_later()

    def break_down(self) -> None:
        """kazoo's thread ends by itself, for good."""
        if self._connected:
            self._cut()
            self._disconnected(self._session)
        self.client_state = KeeperState.CLOSED

    def stop(self) -> None:
        self._stopped = True
        self._fail(ConnectionLoss())
        session, connected, self._connected = self._session, self._connected, False
        self._world.zookeeper.forget_watches(self)
        if session is not None and connected and self._world.reaches_zookeeper(self._process):
            self._world.loop.after(0.005, self._world.zookeeper.end_session, session)

    def close(self) -> None:
        self.client_state = KeeperState.CLOSED

    def _fail(self, error: ZookeeperError) -> None:
        waiting, self._waiting = self._waiting, {}
        for answer in waiting:
            answer.settle(None, error)

    # --- requests ---

    def _ask(self, request: Callable[[SessionEntry], Any]) -> Answer:
        answer, loop, session = Answer(), self._world.loop, self._session
        if not self._connected or session is None:
            answer.settle(None, ConnectionLoss())
            return answer
        self._waiting[answer] = None
        self._arrives_at = max(self._arrives_at, loop.now + self._world.zookeeper_delay())
        loop.after(self._arrives_at - loop.now, self._world.at_zookeeper, self, session, request, answer)
        return answer

    def carry_out(self, session: SessionEntry, request: Callable[[SessionEntry], Any], answer: Answer) -> None:
        """The request has come to the server."""
        value, error = None, None
        if session.ended:
            error = SessionExpiredError()
        else:
            session.heard_at = self._world.loop.now
            try:
                value = request(session)
            except ZookeeperError as refused:
                error = refused
        loop = self._world.loop
        self._answers_at = max(self._answers_at, loop.now + self._world.zookeeper_delay())
        loop.post(self._process, self._answers_at - loop.now, self._answered, answer, value, error)

    def _answered(self, answer: Answer, value: Any, error: ZookeeperError | None) -> None:
        if self._waiting.pop(answer, 0) is None and self._world.reaches_zookeeper(self._process):
            answer.settle(value, error)

    def _watch(self, kind: str, path: str, watch: Callable[[Any], object] | None) -> Any:
        if watch is None:
            return None
        key = (self, kind, path, watch)
        self._watching[key] = watch

        def fire(fired: str) -> None:
            delay = self._world.zookeeper_delay() * self._world.random.choice((1, 1, 1, 20))
            self._world.loop.post(self._process, delay, self._fired, key, fired)

        return key, fire

    def _fired(self, key: tuple[Any, ...], path: str) -> None:
        callback = self._watching.pop(key, None)
        if callback is not None and self._world.reaches_zookeeper(self._process):
            callback(Event(path))

    def get_async(self, path: str, watch: Callable[[Any], object] | None = None) -> Answer:
        watching = self._watch("data", path, watch)
        return self._ask(lambda session: self._world.zookeeper.get(path, watching))

    def exists_async(self, path: str, watch: Callable[[Any], object] | None = None) -> Answer:
        watching = self._watch("data", path, watch)
        return self._ask(lambda session: self._world.zookeeper.exists(path, watching))

    def get_children_async(self, path: str, watch: Callable[[Any], object] | None = None) -> Answer:
        watching = self._watch("children", path, watch)
        return self._ask(lambda session: self._world.zookeeper.children(path, watching))

    def create_async(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        include_data: bool = False,
    ) -> Answer:
        def create(session: SessionEntry) -> Any:
            zookeeper = self._world.zookeeper
            made = zookeeper.create(session, path, data, ephemeral=ephemeral, sequence=sequence)
            return (made, zookeeper.nodes[made].stat) if include_data else made

        return self._ask(create)

    def set_async(self, path: str, data: bytes) -> Answer:
        return self._ask(lambda session: self._world.zookeeper.set(session, path, data, -1))

    def delete_async(self, path: str) -> Answer:
        return self._ask(lambda session: self._world.zookeeper.delete(session, path))

    def ensure_path_async(self, path: str) -> Answer:
        return self._ask(lambda session: self._world.zookeeper.ensure_path(session, path))

    def transaction(self) -> Transaction:
        return Transaction(self)

    def commit_async(self, writes: list[Write]) -> Answer:
        return self._ask(lambda session: self._world.zookeeper.transact(session, writes))


class Transaction:
    """kazoo's TransactionRequest."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._writes: list[Write] = []

    def check(self, path: str, version: int) -> None:
        self._writes.append(("check", path, None, version))

    def create(self, path: str, data: bytes) -> None:
        self._writes.append(("create", path, data, -1))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self._writes.append(("set", path, data, version))

    def commit_async(self) -> Answer:
        return self._client.commit_async(self._writes)
