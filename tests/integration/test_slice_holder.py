"""The worker's side of the handover, against a real ZooKeeper and a leader that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kazoo.client import KazooClient
from structlog.testing import capture_logs

from ringcron.assignment import Assignment, Cell, Ring, encode
from ringcron.members import Ack, Incarnation, MemberNode, read_members
from ringcron.models import Arc, Holding, Slice
from ringcron.ring import arcs
from ringcron.slots import SLOT_COUNT
from tests.support.fleet import HANDLERS, SESSION_SECONDS, Light
from tests.support.servers import OwnZooKeeper, zookeeper_client
from tests.support.waiting import until

WHOLE = Arc(lo=0, hi=SLOT_COUNT - 1)
OTHER = Incarnation("other.0", 1)


class Leader:
    """Publishes what the test wants, without any check."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.lineage = "l1"

    def incarnation(self, worker: Light) -> Incarnation | None:
        stat = self.client.exists(f"/workers/{worker.id}")
        return None if stat is None else Incarnation(worker.id, stat.czxid)

    def acked(self, worker: Light) -> Ack:
        data, stat = self.client.get(f"/workers/{worker.id}")
        read = read_members([MemberNode(id=worker.id, data=data, czxid=stat.czxid)])
        return read.planned[0].acked

    def publish(self, epoch: int, *cells: tuple[Cell, int], members: tuple[Incarnation, ...] | None = None) -> None:
        """`cells` with how many slots each; the last one goes on to the end of the ring."""
        dealt = [cell for cell, count in cells for _ in range(count)]
        dealt += [cells[-1][0]] * (SLOT_COUNT - len(dealt))
        named = {cell.owner for cell, _ in cells} | {cell.to for cell, _ in cells}
        assignment = Assignment(
            epoch=epoch,
            lineage=self.lineage,
            ring_size=SLOT_COUNT,
            members=members or tuple(one for one in named if one is not None),
            rings=(Ring(handlers=HANDLERS, arcs=arcs(dealt)),),
            leader="test",
            cause="test",
        )
        self.write(encode(assignment))

    def write(self, data: bytes) -> None:
        if self.client.exists("/assignment"):
            self.client.set("/assignment", data)
        else:
            self.client.create("/assignment", data)


def slices(*given: tuple[int, int]) -> tuple[Slice, ...]:
    return (Slice(handlers=HANDLERS, arcs=tuple(Arc(lo=lo, hi=hi) for lo, hi in given)),)


@pytest.fixture
def leader(zookeeper_hosts: str) -> Any:
    with zookeeper_client(zookeeper_hosts) as client:
        yield Leader(client)


@pytest.fixture
async def worker(zookeeper_hosts: str) -> AsyncIterator[Light]:
    worker = Light(zookeeper_hosts, "w")
    await worker.start()
    yield worker
    await worker.leave()


async def me_of(worker: Light, leader: Leader) -> Incarnation:
    return await until(lambda: leader.incarnation(worker))


async def holds(worker: Light, expected: Holding, *, seconds: float = 10) -> None:
    await until(lambda: worker.holding() == expected, seconds=seconds, what=f"{expected}, not {worker.holding()}")


async def granted_everything(worker: Light, leader: Leader) -> Incarnation:
    me = await me_of(worker, leader)
    leader.publish(1, (Cell(owner=me), SLOT_COUNT))
    await holds(worker, Holding(epoch=1, slices=slices((0, 4095)), proven=True))
    await until(lambda: leader.acked(worker) == Ack(1, "l1"))
    return me


async def test_without_zookeeper_it_holds_the_whole_ring_until_it_leaves() -> None:
    worker = Light(None, "w")
    await worker.start()
    assert worker.holding() == Holding(epoch=0, slices=slices((0, 4095)), proven=True)
    await worker.leave()
    assert worker.holding().slices == ()


async def test_with_a_zookeeper_that_does_not_answer_yet_it_starts_without_a_warning_and_leaves() -> None:
    worker = Light("127.0.0.1:1/none", "w")
    with capture_logs() as logs:
        await worker.start()
        assert worker.holding() == Holding(epoch=0, slices=(), proven=False)
        await until(lambda: any(entry["event"] == "connecting to ZooKeeper" for entry in logs))
        await worker.leave()
    assert "the assignment cannot be followed" not in {entry["event"] for entry in logs}


async def test_it_says_who_it_is(worker: Light, leader: Leader) -> None:
    await me_of(worker, leader)
    data, stat = leader.client.get(f"/workers/{worker.id}")
    (member,) = read_members([MemberNode(id=worker.id, data=data, czxid=stat.czxid)]).planned
    assert (member.name, member.capacity, member.handlers, member.acked) == ("w", 10, HANDLERS, Ack())


async def test_it_holds_nothing_before_an_assignment_names_it(worker: Light, leader: Leader) -> None:
    await me_of(worker, leader)
    leader.publish(1, (Cell(owner=OTHER), SLOT_COUNT))
    await holds(worker, Holding(epoch=1, slices=(), proven=False))
    assert leader.acked(worker) == Ack()


async def test_it_takes_what_is_granted_tells_of_it_and_acknowledges(worker: Light, leader: Leader) -> None:
    me = await me_of(worker, leader)
    worker.changed.clear()
    leader.publish(1, (Cell(owner=me), 10), (Cell(owner=OTHER), 10), (Cell(owner=me), 10), (Cell(), 1))
    await asyncio.wait_for(worker.changed.wait(), 10)
    await holds(worker, Holding(epoch=1, slices=slices((0, 9), (20, 29)), proven=True))
    await until(lambda: leader.acked(worker) == Ack(1, "l1"))


async def test_a_revocation_is_obeyed_at_once_and_acknowledged_after_the_claims_in_flight(
    worker: Light, leader: Leader
) -> None:
    me = await granted_everything(worker, leader)
    async with worker.claiming() as holding:
        assert holding.slices == slices((0, 4095))
        leader.publish(2, (Cell(owner=me), 100), (Cell(owner=me, to=OTHER, since=2), 1))
        await holds(worker, Holding(epoch=2, slices=slices((0, 99)), proven=True))
        async with worker.claiming() as later:
            assert later.slices == slices((0, 99))
            # Rounds go by, and nothing is acknowledged: the older claim is still in flight.
            for _ in range(3):
                worker._wake.set()
                await until(lambda: not worker._wake.is_set())
            assert leader.acked(worker) == Ack(1, "l1")
    await until(lambda: leader.acked(worker) == Ack(2, "l1"))


async def test_a_claim_that_began_after_the_revocation_holds_nothing_back(worker: Light, leader: Leader) -> None:
    me = await granted_everything(worker, leader)
    async with worker.claiming():
        leader.publish(2, (Cell(owner=me), 100), (Cell(owner=me, to=OTHER, since=2), 1))
        await holds(worker, Holding(epoch=2, slices=slices((0, 99)), proven=True))
        later = worker.claiming()
        await later.__aenter__()
    await until(lambda: leader.acked(worker) == Ack(2, "l1"))
    await later.__aexit__(None, None, None)


async def test_an_older_assignment_is_not_followed(worker: Light, leader: Leader) -> None:
    """Somebody has put an old copy back: what we gave up since may be another's."""
    me = await granted_everything(worker, leader)
    leader.publish(2, (Cell(owner=me), 100), (Cell(owner=OTHER), 1))
    await until(lambda: leader.acked(worker) == Ack(2, "l1"))
    leader.publish(1, (Cell(owner=me), SLOT_COUNT))
    await holds(worker, Holding(epoch=2, slices=slices((0, 99)), proven=False))
    leader.publish(3, (Cell(owner=me), 50), (Cell(owner=OTHER), 1))
    await holds(worker, Holding(epoch=3, slices=slices((0, 49)), proven=True))


@pytest.mark.parametrize("data", [b"", b"junk"])
async def test_with_a_broken_assignment_it_keeps_its_slice_unproven(worker: Light, leader: Leader, data: bytes) -> None:
    me = await granted_everything(worker, leader)
    leader.write(data)
    await holds(worker, Holding(epoch=1, slices=slices((0, 4095)), proven=False))
    leader.publish(2, (Cell(owner=me), SLOT_COUNT))
    await holds(worker, Holding(epoch=2, slices=slices((0, 4095)), proven=True))


async def test_with_a_deleted_assignment_it_keeps_its_slice_unproven(worker: Light, leader: Leader) -> None:
    me = await granted_everything(worker, leader)
    leader.client.delete("/assignment")
    await holds(worker, Holding(epoch=1, slices=slices((0, 4095)), proven=False))
    leader.lineage = "l2"
    leader.publish(2, (Cell(to=me, since=2), SLOT_COUNT))
    await until(lambda: leader.acked(worker) == Ack(2, "l2"))
    assert worker.holding() == Holding(epoch=2, slices=(), proven=True)


async def test_a_new_lineage_of_the_same_epoch_is_acknowledged_too(worker: Light, leader: Leader) -> None:
    me = await granted_everything(worker, leader)
    leader.lineage = "l2"
    leader.publish(1, (Cell(to=me, since=1), SLOT_COUNT))
    await until(lambda: leader.acked(worker) == Ack(1, "l2"))


async def test_who_registers_again_holds_nothing_until_it_is_named_again(worker: Light, leader: Leader) -> None:
    me = await granted_everything(worker, leader)
    stale = []

    async def look_all_the_time() -> None:
        while True:
            if worker._registration.czxid != me.czxid and worker.holding().proven and worker.holding().slices:
                stale.append(worker.holding())
            await asyncio.sleep(0)

    looking = asyncio.create_task(look_all_the_time())
    leader.client.delete(f"/workers/{worker.id}")
    again = await until(lambda: (found := leader.incarnation(worker)) != me and found, seconds=SESSION_SECONDS * 3)
    await holds(worker, Holding(epoch=1, slices=(), proven=False))
    looking.cancel()
    assert stale == []
    leader.publish(2, (Cell(owner=again), SLOT_COUNT))
    await holds(worker, Holding(epoch=2, slices=slices((0, 4095)), proven=True))


async def test_a_session_that_was_ended_is_registered_again(
    worker: Light, leader: Leader, zookeeper_hosts: str
) -> None:
    me = await granted_everything(worker, leader)
    assert worker._session is not None
    assert worker._session._client is not None
    thief = KazooClient(zookeeper_hosts, client_id=worker._session._client.client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()
    await until(lambda: (found := leader.incarnation(worker)) != me and found is not None, seconds=SESSION_SECONDS + 5)
    await holds(worker, Holding(epoch=1, slices=(), proven=False))


async def test_cut_off_it_keeps_its_slice_unproven_and_proves_it_again(
    own_zookeeper: Callable[[], OwnZooKeeper],
) -> None:
    server = own_zookeeper()
    worker = Light(server.hosts, "w", session_seconds=4)
    await worker.start()
    with zookeeper_client(server.hosts) as client:
        leader = Leader(client)
        await granted_everything(worker, leader)
        worker.changed.clear()
        server.freeze()
        started = asyncio.get_running_loop().time()
        await holds(worker, Holding(epoch=1, slices=slices((0, 4095)), proven=False), seconds=4 * 3)
        assert asyncio.get_running_loop().time() - started <= 4 * 3
        await asyncio.wait_for(worker.changed.wait(), 10)
        server.thaw()
        # The session may or may not have outlived it; either way the worker is a member again, and says what it knows.
        await until(lambda: leader.incarnation(worker), seconds=20)
        await until(lambda: worker._session is not None and worker._session.proven(), seconds=20)
    await worker.leave()


async def test_with_zookeeper_stopped_it_keeps_its_slice_and_is_a_member_soon_after(
    own_zookeeper: Callable[[], OwnZooKeeper],
) -> None:
    server = own_zookeeper()
    worker = Light(server.hosts, "w")
    await worker.start()
    with zookeeper_client(server.hosts) as client:
        await granted_everything(worker, Leader(client))
    await asyncio.to_thread(server.kill)
    await holds(worker, Holding(epoch=1, slices=slices((0, 4095)), proven=False), seconds=SESSION_SECONDS * 3)
    await asyncio.to_thread(server.start)
    with zookeeper_client(server.hosts) as client:
        await until(lambda: Leader(client).incarnation(worker), seconds=SESSION_SECONDS + 5)
    await worker.leave()


async def test_leaving_waits_for_the_claims_in_flight_and_deletes_only_its_own_node(
    worker: Light, leader: Leader
) -> None:
    await granted_everything(worker, leader)
    leader.client.create("/workers/neighbour", b"")
    async with worker.claiming():
        leaving = asyncio.create_task(worker.leave())
        await until(lambda: worker.holding().slices == ())
        assert leader.incarnation(worker) is not None
        assert not leaving.done()
    await asyncio.wait_for(leaving, 10)
    assert leader.client.get_children("/workers") == ["neighbour"]
    assert not worker.holding().proven
