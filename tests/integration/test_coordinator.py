"""The coordinator on a real ZooKeeper, with many light workers: how slices change hands."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from kazoo.client import KazooClient

from ringcron.membership import Session
from ringcron.slots import SLOT_COUNT
from ringcron_coordinator.coordinator import Coordinator
from tests.support.coordinators import coordinator_on, metric, read_assignment, settings_for, settles
from tests.support.fleet import HANDLERS, SESSION_SECONDS, Fleet
from tests.support.servers import OwnZooKeeper, zookeeper_client
from tests.support.waiting import until


@pytest.fixture
async def coordinator(zookeeper_hosts: str, database_url: str) -> AsyncIterator[Coordinator]:
    async with coordinator_on(settings_for(zookeeper_hosts, database_url)) as coordinator:
        yield coordinator


@pytest.fixture
async def fleet(zookeeper_hosts: str) -> AsyncIterator[Fleet]:
    async with Fleet(zookeeper_hosts) as fleet:
        yield fleet


class TestSlices:
    async def test_20_workers_join_and_leave(self, coordinator: Coordinator, fleet: Fleet) -> None:
        """Disjoint at every look (is_complete checks), complete in the end, and few versions."""
        await fleet.join_all(f"w{number}" for number in range(20))
        await settles(fleet)
        await asyncio.gather(*(worker.leave() for worker in fleet.workers[5:10]))
        left, fleet.workers[5:10] = fleet.workers[5:10], []
        assert all(not worker.places() for worker in left)
        before = fleet.epoch
        await settles(fleet)
        assert fleet.epoch - before <= 3
        before = fleet.epoch
        await fleet.join_all(f"w{number}" for number in range(20, 30))
        await settles(fleet)
        assert fleet.epoch - before <= 2 * 3  # should the joining take longer than the quiet

    async def test_the_slices_are_those_that_were_planned(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        await fleet.join("w1", capacity=20)
        await fleet.join("w2", handlers=("gpu", *HANDLERS))
        await fleet.join("w3", capacity=0)
        gpu_only = {("gpu", slot) for slot in range(SLOT_COUNT)}
        first, second, idle = fleet.workers

        def as_planned() -> bool:
            found = read_assignment(zookeeper_hosts)
            return (
                found is not None
                and not found.revocations()
                and [ring.handlers for ring in found.rings] == [("gpu",), HANDLERS]
                and all(worker.holding().proven for worker in fleet.workers)
                and gpu_only < second.places()
                and len(first.places()) > len(second.places() - gpu_only) > 0
                and not idle.places()
            )

        await until(as_planned)

    async def test_a_worker_killed_and_started_again_under_its_name(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        """The dead one's node lingers until its session ends; the new one is planned with, the old one passed over."""
        with light_program(zookeeper_hosts, "w1") as process:
            await fleet.join("w2")
            await until(lambda: 0 < len(fleet.workers[0].places()) < len(HANDLERS) * SLOT_COUNT)
            process.kill()
            process.wait()
        before = fleet.workers[0].places()
        await fleet.join("w1")
        await settles(fleet, seconds=3 * (SESSION_SECONDS + 5))
        assert fleet.workers[0].places() == before  # a stable name gets the slots that it had

    async def test_an_owner_that_does_not_acknowledge_is_passed_over(
        self, coordinator: Coordinator, fleet: Fleet
    ) -> None:
        first = await fleet.join("w1")
        await settles(fleet)
        overdue = metric("ringcron_acks_overdue_total")
        async with first.claiming():  # a claim that does not come back
            second = await fleet.join("w2")
            await until(lambda: second.places() and second.holding().proven, seconds=15)
            fleet.check_disjoint()  # the first one has given it up, and only not said so
            await until(lambda: metric("ringcron_acks_overdue_total") == overdue + 1)
        await settles(fleet)

    async def test_a_bad_member_is_named_and_does_not_disturb_the_others(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        with zookeeper_client(zookeeper_hosts) as client:
            client.create("/workers/bad.1", b"{", ephemeral=True, makepath=True)
            client.create("/workers/worse.2", b'{"name": [], "capacity": "x"}', ephemeral=True)
            await fleet.join_all(["w1", "w2"])
            await settles(fleet)
            await until(lambda: metric("ringcron_bad_members") == 2)
        await until(lambda: metric("ringcron_bad_members") == 0)
        await settles(fleet)

    async def test_a_deleted_tree_heals(self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str) -> None:
        await fleet.join_all(["w1", "w2", "w3"])
        await settles(fleet)
        with zookeeper_client(zookeeper_hosts) as client:
            for child in client.get_children("/"):
                client.delete(f"/{child}", recursive=True)
        await until(lambda: not all(worker.holding().proven for worker in fleet.workers))
        await settles(fleet, seconds=15)

    @pytest.mark.parametrize("data", [None, b"junk", b""])
    async def test_a_lost_assignment_heals(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str, data: bytes | None
    ) -> None:
        await fleet.join_all(["w1", "w2", "w3"])
        await settles(fleet)
        with zookeeper_client(zookeeper_hosts) as client:
            client.delete("/assignment") if data is None else client.set("/assignment", data)
        await until(lambda: not all(worker.holding().proven for worker in fleet.workers))
        await settles(fleet, seconds=15)

    async def test_an_old_assignment_put_back_heals(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        await fleet.join("w1")
        await settles(fleet)
        with zookeeper_client(zookeeper_hosts) as client:
            old, _ = client.get("/assignment")
            await fleet.join("w2")
            await settles(fleet)
            client.set("/assignment", old)
        await until(lambda: not all(worker.holding().proven for worker in fleet.workers))
        await settles(fleet)

    async def test_an_assignment_of_another_format_is_left_alone(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        foreign = zlib.compress(b'{"format":99,"slots":4096}')
        await fleet.join("w1")
        await settles(fleet)
        with zookeeper_client(zookeeper_hosts) as client:
            version = client.set("/assignment", foreign).version
            await until(lambda: not fleet.workers[0].holding().proven)
            await fleet.join("w2")
            await until(lambda: len(client.get_children("/workers")) == 2)
            await until(lambda: coordinator.leader is not None)
            assert client.exists("/assignment").version == version

    async def test_a_session_ended_from_outside_is_registered_again(
        self, coordinator: Coordinator, fleet: Fleet, zookeeper_hosts: str
    ) -> None:
        await fleet.join_all(["w1", "w2", "w3"])
        await settles(fleet)
        for worker in fleet.workers[:2]:
            assert worker._session is not None
            await expire(zookeeper_hosts, worker._session)
        await until(lambda: not all(worker.holding().proven for worker in fleet.workers), seconds=5)
        await settles(fleet)


@contextlib.contextmanager
def light_program(hosts: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A light worker in a process of its own."""
    code = (
        "import asyncio, sys\n"
        "from tests.support.fleet import Light\n"
        "async def main():\n"
        "    await Light(sys.argv[1], sys.argv[2]).start()\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, hosts, name], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def expire(hosts: str, session: Session) -> None:
    """End a session on the server, as a second client with its id and password does by closing it."""
    assert session._client is not None
    thief = KazooClient(hosts, client_id=session._client.client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()


class TestOutages:
    async def test_zookeeper_frozen_and_thawed(
        self, own_zookeeper: Callable[[], OwnZooKeeper], database_url: str
    ) -> None:
        server = own_zookeeper()
        async with (
            coordinator_on(settings_for(server.hosts, database_url)) as coordinator,
            Fleet(server.hosts) as fleet,
        ):
            await fleet.join_all(["w1", "w2", "w3"])
            await settles(fleet)
            held = [worker.places() for worker in fleet.workers]
            server.freeze()
            await until(
                lambda: not any(worker.holding().proven for worker in fleet.workers), seconds=3 * SESSION_SECONDS
            )
            assert [worker.places() for worker in fleet.workers] == held
            await until(lambda: coordinator.leader is None, seconds=3 * SESSION_SECONDS)
            server.thaw()
            await settles(fleet, seconds=3 * (SESSION_SECONDS + 5))

    async def test_zookeeper_stopped_and_started(
        self, own_zookeeper: Callable[[], OwnZooKeeper], database_url: str
    ) -> None:
        """Registered again within the session timeout and 5 s of the start."""
        server = own_zookeeper()
        async with coordinator_on(settings_for(server.hosts, database_url)), Fleet(server.hosts) as fleet:
            await fleet.join_all([f"w{number}" for number in range(6)])
            await settles(fleet)
            await asyncio.to_thread(server.kill)
            await until(lambda: not any(worker.holding().proven for worker in fleet.workers))
            stopped_at = asyncio.get_running_loop().time()  # long enough for a back-off to grow, if it did
            await until(lambda: asyncio.get_running_loop().time() - stopped_at > 5 * SESSION_SECONDS, seconds=30)
            await asyncio.to_thread(server.start)
            with zookeeper_client(server.hosts) as client:
                await until(lambda: len(client.get_children("/workers")) == 6, seconds=SESSION_SECONDS + 5)
            await settles(fleet, seconds=3 * (SESSION_SECONDS + 5))
