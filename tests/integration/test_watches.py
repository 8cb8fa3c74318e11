"""How much a worker watches in ZooKeeper, and what kazoo's threads are made to do: post to the event loop, no more."""

from __future__ import annotations

import asyncio

from ringcron.clock import SystemClock
from ringcron.membership import Session
from tests.support.fleet import Light
from tests.support.servers import zookeeper_client
from tests.support.waiting import until


async def test_a_worker_watches_the_assignment_and_no_other_worker(zookeeper_hosts: str) -> None:
    """K15: where all watch all, the coming of one wakes every one; only a leader watches the members."""
    worker = Light(zookeeper_hosts, "w")
    await worker.start()
    with zookeeper_client(zookeeper_hosts) as client:
        await until(lambda: client.exists(f"/workers/{worker.id}"))
        session = worker._session
        assert session is not None
        kazoo = session._client
        assert kazoo is not None

        def watched() -> set[str]:
            return {path for watches in (kazoo._data_watchers, kazoo._child_watchers) for path in watches}

        client.create("/workers/neighbour", b"")
        client.create("/assignment", b"not one")
        assignment = {f"{session.root}/assignment"}
        for _ in range(3):
            await until(lambda: watched() == assignment)  # for a moment it is none: a watch that has fired is gone
            client.set("/assignment", b"nor this")
    await worker.leave()


async def test_an_assignment_is_found_without_any_hint(zookeeper_hosts: str) -> None:
    """K7: a watch that is lost, whatever became of its callback, delays what it told of and hides nothing."""
    worker = Light(zookeeper_hosts, "w")
    worker._tree._on_change = lambda event: None
    await worker.start()
    with zookeeper_client(zookeeper_hosts) as client:
        await until(lambda: client.exists(f"/workers/{worker.id}"))
        for data in (b"not one", b"nor this"):
            client.set("/assignment", data) if client.exists("/assignment") else client.create("/assignment", data)
            await until(lambda data=data: worker._read is not None and worker._read[0].data == data)
    await worker.leave()


def test_what_kazoo_tells_of_after_the_loop_has_closed_is_dropped(zookeeper_hosts: str) -> None:
    """K5: its threads outlive the loop, and a listener that raised would cost them their connection."""
    told: list[int] = []

    async def used() -> Session:
        session = Session(zookeeper_hosts, session_seconds=2.0, clock=SystemClock(), notify=lambda: None)
        await session.start()
        await until(lambda: session.connected)
        session.post(told.append, 1)
        await until(lambda: told)
        await session.stop()
        return session

    session = asyncio.run(used())
    session.post(told.append, 2)
    assert told == [1]
