"""One ZooKeeper session, for asyncio.

Invariant: `proven` is true only while the server cannot have ended the session: less than two thirds of the session
timeout have passed since the sending of a call that was answered. kazoo's own state is not used for that: while a
client is cut off, or the server frozen, it never learns that the session is lost. Time is elapsed time, so a process
that was stopped wakes up unproven.

kazoo runs threads of its own. Its listeners and watches only post to the event loop; every call is asynchronous and has
a deadline. A call whose deadline has passed may still be carried out later, but within this session and in order: no
caller may send what would be wrong then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, TypeVarTuple

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ZookeeperError,
)
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import MembershipUnavailable, SessionLost

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PROOF_SHARE: Final = 2 / 3
"""Part of the session timeout for which an answered call proves the session."""
CALLS_PER_SESSION: Final = 3
"""A call may take the session timeout divided by this; an owner of a session proves it as often."""
STOP_SECONDS: Final = 2.0
STARTING_SECONDS: Final = 30.0
"""Until the first connection ZooKeeper may itself still be starting: for so long it is no news that it is away."""
_DEAD_CLIENT_SECONDS: Final = 5.0
_BLATHER: Final = 5  # kazoo's name for its lowest log level

_NO_CONNECTION: Final = ("Connection dropped", "Connection time-out")
_NO_ANSWER: Final = (AuthFailedError, ConnectionLoss, OperationTimeoutError, SessionMovedError)

_log = structlog.get_logger(__name__)


class Session:
    """A session that is opened again whenever it is lost. Used from one event loop."""

    def __init__(self, servers: str, *, session_seconds: float, clock: Clock, notify: Callable[[], None]) -> None:
        """`servers` as "h1:2181,h2:2181/chroot". `notify` is called in the event loop at each change of state."""
        self._hosts, _, chroot = servers.partition("/")
        self.root = f"/{chroot}".rstrip("/")
        """What every path starts with. kazoo's own chroot is not used: it cannot create a missing one."""
        self.seconds = session_seconds
        """The session timeout: what was asked for, or what the server has granted if that is less."""
        self.id: int | None = None
        """The session; None before the first and after a loss."""
        self.connected = False
        self._asked_seconds = session_seconds
        self._clock = clock
        self._notify = notify
        self._proved_at: float | None = None
        self._client: KazooClient | None = None
        self._opened_at = 0.0
        self._starting_until = 0.0

    @property
    def call_seconds(self) -> float:
        """Deadline of one call, and how often a session has to be proved."""
        return self.seconds / CALLS_PER_SESSION

    def proven(self) -> bool:
        """Whether the session is certainly alive now."""
        return self._proved_at is not None and self.is_recent(self._proved_at)

    def is_recent(self, sent_at: float) -> bool:
        """Whether the server cannot have ended a session of which it heard when this was sent (elapsed)."""
        return self._clock.elapsed() - sent_at <= self.seconds * PROOF_SHARE

    async def start(self) -> None:
        """Begin to connect. Returns at once, whether or not ZooKeeper answers."""
        self._loop = asyncio.get_running_loop()
        self._starting_until = self._clock.elapsed() + STARTING_SECONDS
        await self._open()

    async def stop(self) -> None:
        """End the session: the server drops its ephemeral nodes. Waits 2 s at most for that."""
        client, self._client = self._client, None
        self._lost()
        if client is not None:
            await self._end(client)

    async def call(self, operation: Callable[[KazooClient], IAsyncResult[T]]) -> T:
        """Send a request and wait for the answer.

        Raises what the server answered (NoNodeError, …), or MembershipUnavailable when no answer came.
        """
        client = self._client
        if client is None or not self.connected:
            await self._mend()
            raise MembershipUnavailable("not connected to ZooKeeper")
        answer: asyncio.Future[T] = self._loop.create_future()
        sent_at, session_id = self._clock.elapsed(), self.id
        operation(client).rawlink(lambda result: self.post(_settle, answer, result))
        try:
            async with asyncio.timeout(self.call_seconds):
                value = await answer
        except TimeoutError:
            raise MembershipUnavailable(f"ZooKeeper did not answer within {self.call_seconds:.1f} s") from None
        except SessionExpiredError as error:
            raise SessionLost from error
        except _NO_ANSWER as error:
            raise MembershipUnavailable(f"ZooKeeper did not answer: {type(error).__name__}") from error
        except ZookeeperError:
            self._prove(sent_at, session_id)
            raise
        self._prove(sent_at, session_id)
        return value

    def post(self, function: Callable[[*Ts], object], *arguments: *Ts) -> None:
        """Have the event loop call `function`. For kazoo's threads: does nothing once the loop is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _prove(self, sent_at: float, session_id: int | None) -> None:
        if session_id is not None and session_id == self.id:
            self._proved_at = max(sent_at, self._proved_at or sent_at)

    async def _open(self) -> None:
        logger = logging.Logger("kazoo.client", _BLATHER)
        logger.addHandler(_Listener(lambda seconds: self.post(self._granted, seconds), self.is_starting))
        client = KazooClient(
            self._hosts,
            timeout=self._asked_seconds,
            # The default waits up to an hour between two attempts once an outage has lasted.
            connection_retry=KazooRetry(max_tries=-1, max_delay=1),
            command_retry=KazooRetry(max_tries=-1, max_delay=1),
            logger=logger,
        )
        client.add_listener(lambda state: self.post(self._heard, client, state, client.client_id))
        self._client, self._opened_at = client, self._clock.elapsed()
        await _aside(client.start_async, STOP_SECONDS)

    async def _mend(self) -> None:
        """Replace a client whose thread has ended by itself (an answer that it did not understand ends it for good)."""
        client = self._client
        if client is None or client.client_state not in (KeeperState.CLOSED, KeeperState.AUTH_FAILED):
            return
        if self._clock.elapsed() - self._opened_at < _DEAD_CLIENT_SECONDS:  # it is CLOSED before it starts, too
            return
        _log.warning("the ZooKeeper client has ended, a new one is made", state=str(client.client_state))
        self._lost()
        await self._open()
        await self._end(client)

    async def _end(self, client: KazooClient) -> None:
        def end() -> None:
            client.stop()
            client.close()

        try:
            await _aside(end, STOP_SECONDS)
        except TimeoutError:
            _log.warning("ZooKeeper did not answer the end of the session; it will time out there")

    def _heard(self, client: KazooClient, state: KazooState, client_id: tuple[int, bytes] | None) -> None:
        if client is not self._client:
            return
        if state == KazooState.CONNECTED and client_id is not None:
            known, self.id, self.connected = self.id, client_id[0], True
            self._starting_until = 0.0
            if known != self.id:
                self._proved_at = None
            metrics.MEMBERSHIP_UP.set(1)
            _log.info(
                "connected to ZooKeeper",
                session=f"{self.id:#x}",
                new=known != self.id,
                asked_seconds=self._asked_seconds,
                session_seconds=self.seconds,
            )
        elif state == KazooState.LOST:
            _log.warning("the ZooKeeper session is lost")
            self._lost()
        else:
            _log.warning("the connection to ZooKeeper is lost")
            self.connected = False
            metrics.MEMBERSHIP_UP.set(0)
        self._notify()

    def _lost(self) -> None:
        self.id, self.connected, self._proved_at = None, False, None
        metrics.MEMBERSHIP_UP.set(0)

    def is_starting(self) -> bool:
        """Whether there was no connection yet, and it is too early to say that there is none."""
        return self._clock.elapsed() < self._starting_until

    def _granted(self, seconds: float) -> None:
        """The server clamps the timeout to its limits. A longer one than was asked for is not relied on."""
        self.seconds = min(seconds, self._asked_seconds)


def _settle(answer: asyncio.Future[T], result: IAsyncResult[T]) -> None:
    if answer.done():
        return
    if result.exception is None:
        answer.set_result(result.value)
    elif isinstance(result.exception, ZookeeperError):
        answer.set_exception(result.exception)
    else:  # kazoo has stumbled over the answer: nothing is known
        answer.set_exception(ConnectionLoss(repr(result.exception)))


class _Listener(logging.Handler):
    """Passes kazoo's warnings on, each once in a row: it repeats them every second of an outage. A connection that is
    not to be had is none while `is_starting`.

    And picks up the granted session timeout, which is in no attribute of kazoo's, only in its log.
    """

    def __init__(self, granted: Callable[[float], None], is_starting: Callable[[], bool]) -> None:
        super().__init__()
        self._granted = granted
        self._is_starting = is_starting
        self._passed_on = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if record.msg.startswith(_NO_CONNECTION) and self._is_starting():
                return
            text = record.getMessage()
            if text != self._passed_on:
                logging.getLogger("kazoo.client").handle(record)
            self._passed_on = text
        elif record.levelno == _BLATHER and record.msg.startswith("Session created") and record.args:
            milliseconds: Any = tuple(record.args)[2]
            self._granted(milliseconds / 1000)


async def _aside(function: Callable[[], object], seconds: float) -> None:
    """Call a blocking function in a thread of its own, which is left behind when it takes too long.

    Not the loop's executor: the end of the program waits for that one.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def work() -> None:
        error: BaseException | None = None
        try:
            function()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=work, name="kazoo-aside", daemon=True).start()
    async with asyncio.timeout(seconds):
        await done
