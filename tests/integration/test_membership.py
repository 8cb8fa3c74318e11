"""The ZooKeeper session, our own node, and the tree, on a real server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ringcron.clock import SystemClock
from ringcron.errors import MembershipUnavailable
from ringcron.local.processes import free_port
from ringcron.members import Ack, encode_member
from ringcron.membership import Published, Registration, Session, Stored, Tree
from ringcron.membership.session import _Listener
from tests.support.garbling_proxy import garbling_proxy
from tests.support.servers import OwnZooKeeper, zookeeper_client
from tests.support.waiting import until

SESSION_SECONDS = 2.0
emit = _Listener.emit


@contextlib.asynccontextmanager
async def session_on(
    hosts: str, *, seconds: float = SESSION_SECONDS, notify: Callable[[], None] = lambda: None
) -> AsyncIterator[Session]:
    session = Session(hosts, session_seconds=seconds, clock=SystemClock(), notify=notify)
    await session.start()
    try:
        yield session
    finally:
        await session.stop()


@pytest.fixture
async def session(zookeeper_hosts: str) -> AsyncIterator[Session]:
    async with session_on(zookeeper_hosts) as session:
        await until(lambda: session.connected)
        yield session


def data(acked: int = 0) -> bytes:
    return encode_member(name="w", capacity=1, handlers=["log"], version="1", acked=Ack(acked, "l"))


async def expire(session: Session) -> None:
    """End the session on the server, as a second client with its id and password does by closing it."""
    assert session._client is not None
    hosts = session._hosts
    thief = KazooClient(hosts, timeout=session.seconds, client_id=session._client.client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()


async def proved(session: Session) -> bool:
    """Ask for something, and whether the session is proven then."""
    with contextlib.suppress(MembershipUnavailable):
        await session.call(lambda client: client.exists_async("/"))
    return session.proven()


async def refused(session: Session) -> bool:
    """Ask for something, and whether there was no answer."""
    try:
        await session.call(lambda client: client.exists_async("/"))
    except MembershipUnavailable:
        return True
    return False


class TestSession:
    async def test_an_answered_call_proves_the_session(self, session: Session) -> None:
        assert not session.proven()
        await session.call(lambda client: client.exists_async("/"))
        assert session.proven()

    @pytest.mark.parametrize("starting_seconds", [60.0, 0.0])
    async def test_that_nobody_listens_yet_is_no_news_until_it_lasts(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, starting_seconds: float
    ) -> None:
        monkeypatch.setattr("ringcron.membership.session.STARTING_SECONDS", starting_seconds)
        heard: list[str] = []
        monkeypatch.setattr(
            "ringcron.membership.session._Listener.emit",
            lambda listener, record: (heard.append(record.getMessage()), emit(listener, record)),
        )
        async with session_on(f"127.0.0.1:{free_port()}"):
            await until(lambda: sum(text.startswith("Connection dropped") for text in heard) >= 2)
        assert any(text.startswith("Connection dropped") for text in caplog.messages) == (starting_seconds == 0)

    async def test_an_answer_that_says_no_is_an_answer(self, session: Session) -> None:
        with pytest.raises(NoNodeError):
            await session.call(lambda client: client.get_async("/none"))
        assert session.proven()

    async def test_the_proof_ages(self, zookeeper_hosts: str) -> None:
        class Moving(SystemClock):
            ahead = 0.0

            def elapsed(self) -> float:
                return super().elapsed() + self.ahead

        clock = Moving()
        session = Session(zookeeper_hosts, session_seconds=30, clock=clock, notify=lambda: None)
        await session.start()
        await until(lambda: proved(session))
        clock.ahead = 19
        assert session.proven()
        clock.ahead = 20.5
        assert not session.proven()
        await session.stop()

    async def test_the_server_may_grant_less_than_was_asked_for(self, zookeeper_hosts: str) -> None:
        async with session_on(zookeeper_hosts, seconds=1000) as session:
            await until(lambda: session.connected)
            assert session.seconds < 1000

    async def test_it_starts_without_a_server_and_connects_when_there_is_one(
        self, own_zookeeper: Callable[[], OwnZooKeeper]
    ) -> None:
        server = own_zookeeper()
        server.stop()
        async with session_on(f"{server.hosts}/app") as session:
            with pytest.raises(MembershipUnavailable):
                await session.call(lambda client: client.exists_async("/"))
            await asyncio.to_thread(server.start)
            await until(lambda: proved(session), seconds=20)

    async def test_a_frozen_server_blocks_nothing_and_ends_the_proof(
        self, own_zookeeper: Callable[[], OwnZooKeeper]
    ) -> None:
        server = own_zookeeper()
        async with session_on(server.hosts) as session:
            await until(lambda: proved(session))
            server.freeze()
            await until(lambda: refused(session))  # a stop takes effect a moment after it was asked for
            await until(lambda: not session.proven(), seconds=3 * SESSION_SECONDS)
            server.thaw()
            await until(lambda: proved(session), seconds=20)

    async def test_it_is_connected_soon_after_a_long_outage(self, own_zookeeper: Callable[[], OwnZooKeeper]) -> None:
        """kazoo's default would by then wait longer from try to try, up to an hour."""
        server = own_zookeeper()
        async with session_on(server.hosts) as session:
            await until(lambda: proved(session))
            await asyncio.to_thread(server.kill)
            await until(lambda: not session.connected)
            assert session._client is not None
            retry: Any = session._client._conn_retry  # type: ignore[attr-defined]
            assert (retry.max_tries, retry.max_delay) == (-1, 1)
            await asyncio.to_thread(server.start)
            await until(lambda: proved(session), seconds=15)

    async def test_a_session_that_was_ended_is_followed_by_another(self, session: Session) -> None:
        first = session.id
        await expire(session)
        await until(lambda: session.id not in (first, None))
        await until(lambda: proved(session))

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    async def test_a_client_whose_thread_has_died_is_replaced(self, zookeeper_hosts: str) -> None:
        """kazoo's connection thread ends for good when an answer does not fit the request."""
        address, _, chroot = zookeeper_hosts.partition("/")
        async with garbling_proxy(address) as proxy, session_on(f"{proxy}/{chroot}") as session:
            await until(lambda: session.connected)
            client = session._client
            with pytest.raises(MembershipUnavailable):
                await session.call(lambda client: client.exists_async("/"))
            await until(lambda: proved(session), seconds=20)
            assert session._client is not client


class TestRegistration:
    async def test_it_creates_its_node_with_all_that_is_above_it(self, zookeeper_hosts: str) -> None:
        async with session_on(f"{zookeeper_hosts}/deep/er") as session:
            await until(lambda: session.connected)
            registration = Registration(session, "w.1", data)
            assert registration.czxid is None
            czxid = await registration.verify()
            with zookeeper_client(zookeeper_hosts) as client:
                found, stat = client.get("/deep/er/workers/w.1")
            assert (found, stat.czxid, stat.ephemeralOwner) == (data(), czxid, session.id)
            assert registration.czxid == czxid

    async def test_a_deleted_node_is_made_anew_and_is_another(self, session: Session, zookeeper_hosts: str) -> None:
        registration = Registration(session, "w.1", data)
        first = await registration.verify()
        with zookeeper_client(zookeeper_hosts) as client:
            client.delete("/workers", recursive=True)
        second = await registration.verify()
        assert second is not None
        assert first != second

    async def test_spoilt_data_is_mended(self, session: Session, zookeeper_hosts: str) -> None:
        registration = Registration(session, "w.1", data)
        with zookeeper_client(zookeeper_hosts) as client:
            czxid = await registration.verify()
            client.set("/workers/w.1", b"junk")
            assert await registration.verify() == czxid
            assert client.get("/workers/w.1")[0] == data()

    async def test_a_node_of_another_session_is_left_alone(self, session: Session, zookeeper_hosts: str) -> None:
        registration = Registration(session, "w.1", data)
        with zookeeper_client(zookeeper_hosts) as other:
            other.create("/workers/w.1", b"theirs", ephemeral=True, makepath=True)
            assert await registration.verify() is None
            await registration.write()
            await registration.withdraw()
            assert other.get("/workers/w.1")[0] == b"theirs"
        await until(registration.verify)

    async def test_after_the_session_was_ended_it_registers_again(self, session: Session) -> None:
        registration = Registration(session, "w.1", data)
        first = await registration.verify()
        await expire(session)
        await until(lambda: registration.czxid is None)

        async def again() -> int | None:
            with contextlib.suppress(MembershipUnavailable):
                return await registration.verify()
            return None

        assert await until(again) != first

    async def test_withdrawing_deletes_the_node(self, session: Session, zookeeper_hosts: str) -> None:
        registration = Registration(session, "w.1", data)
        await registration.verify()
        await registration.withdraw()
        assert registration.czxid is None
        with zookeeper_client(zookeeper_hosts) as client:
            assert client.get_children("/workers") == []


class TestTree:
    async def test_members_are_read_and_read_again_when_hinted_at(self, session: Session, zookeeper_hosts: str) -> None:
        hints = asyncio.Event()
        tree = Tree(session, hints.set)
        assert await tree.members(afresh=False) == []  # and the folder was made
        with zookeeper_client(zookeeper_hosts) as client:
            client.create("/workers/a", b"1", ephemeral=True)
            await asyncio.wait_for(hints.wait(), 5)
            hints.clear()
            (first,) = await tree.members(afresh=False)
            assert (first.id, first.data) == ("a", b"1")
            client.set("/workers/a", b"2")
            await asyncio.wait_for(hints.wait(), 5)
            assert [node.data for node in await tree.members(afresh=False)] == [b"2"]
            client.delete("/workers/a")
            client.create("/workers/a", b"2", ephemeral=True)

            async def another() -> bool:
                return [node.czxid for node in await tree.members(afresh=False)] != [first.czxid]

            await until(another)
        await until(lambda: _is_empty(tree))

    async def test_a_folder_that_was_deleted_and_made_anew_is_watched_again(
        self, session: Session, zookeeper_hosts: str
    ) -> None:
        tree = Tree(session, lambda: None)
        await tree.members(afresh=False)
        with zookeeper_client(zookeeper_hosts) as client:
            client.delete("/workers", recursive=True)
            assert await tree.members(afresh=False) == []
            client.create("/workers/a", b"", ephemeral=True)
            assert [node.id for node in await tree.members(afresh=False)] == ["a"]

    async def test_the_coming_of_an_assignment_is_hinted_at(self, session: Session, zookeeper_hosts: str) -> None:
        hints = asyncio.Event()
        tree = Tree(session, hints.set)
        assert await tree.assignment() is None
        with zookeeper_client(zookeeper_hosts) as client:
            client.create("/assignment", b"1")
            await asyncio.wait_for(hints.wait(), 5)
            assert (await _stored(tree)).data == b"1"
            hints.clear()
            client.set("/assignment", b"2")
            await asyncio.wait_for(hints.wait(), 5)
            assert (await _stored(tree)).data == b"2"

    async def test_publishing_needs_the_writers_node_and_the_version_that_was_read(
        self, session: Session, zookeeper_hosts: str
    ) -> None:
        tree = Tree(session, lambda: None)
        with zookeeper_client(zookeeper_hosts) as client:
            client.create("/leader/me", makepath=True)
            node = f"{session.root}/leader/me"
            assert await tree.publish(b"1", over=None, while_exists=node) is Published.DONE
            assert await tree.publish(b"x", over=None, while_exists=node) is Published.OVERTAKEN
            first = await _stored(tree)
            assert await tree.publish(b"2", over=first, while_exists=node) is Published.DONE
            assert await tree.publish(b"x", over=first, while_exists=node) is Published.OVERTAKEN
            second = await _stored(tree)
            client.delete("/leader/me")
            assert await tree.publish(b"x", over=second, while_exists=node) is Published.DEPOSED
            assert client.get("/assignment")[0] == b"2"
            client.create("/leader/me")
            client.delete("/assignment")
            assert await tree.publish(b"x", over=second, while_exists=node) is Published.OVERTAKEN


async def _stored(tree: Tree) -> Stored:
    stored = await tree.assignment()
    assert stored is not None
    return stored


async def _is_empty(tree: Tree) -> bool:
    return await tree.members(afresh=False) == []
