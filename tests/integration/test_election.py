"""Who leads: contenders, terms, and what becomes of a leader that was killed, stopped, cut off or hung."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ringcron.clock import SystemClock
from ringcron.membership import Published, Session, Tree
from ringcron.slots import SLOT_COUNT
from ringcron_coordinator.election import Election
from ringcron_coordinator.leader import Leader
from tests.support.coordinators import FAST, coordinator_on, metric, settings_for, settles
from tests.support.fleet import SESSION_SECONDS, Fleet
from tests.support.programs import Program, Programs
from tests.support.servers import zookeeper_client
from tests.support.waiting import until


@pytest.fixture
async def fleet(zookeeper_hosts: str) -> AsyncIterator[Fleet]:
    async with Fleet(zookeeper_hosts) as fleet:
        yield fleet


@pytest.fixture
async def session(zookeeper_hosts: str) -> AsyncIterator[Session]:
    session = Session(zookeeper_hosts, session_seconds=SESSION_SECONDS, clock=SystemClock(), notify=lambda: None)
    await session.start()
    await until(lambda: session.connected)
    yield session
    await session.stop()


def contenders(hosts: str) -> list[str]:
    """The names in the election, the leader first."""
    with zookeeper_client(hosts) as client:
        names = client.get_children("/leader") if client.exists("/leader") else []
    return [name.split(".")[0] for name in sorted(names, key=lambda name: name[-10:])]


async def leader_first(hosts: str, both: list[Program]) -> list[Program]:
    """Two coordinators, the one that leads first."""
    await until(lambda: len(contenders(hosts)) == 2, seconds=30)
    order = contenders(hosts)
    return sorted(both, key=lambda program: order.index(program.name))


@pytest.mark.processes
class TestPrograms:
    async def test_a_killed_leader_is_succeeded(
        self, zookeeper_hosts: str, database_url: str, fleet: Fleet, programs: Programs
    ) -> None:
        both = [programs.coordinator(database_url, zookeeper_hosts, name=name, **FAST) for name in ("c1", "c2")]
        leader, other = await leader_first(zookeeper_hosts, both)
        await fleet.join_all(["w1", "w2"])
        await settles(fleet, seconds=30)
        leader.kill()
        await until(lambda: contenders(zookeeper_hosts) == [other.name], seconds=3 * 2 * SESSION_SECONDS)
        await fleet.join("w3")
        await settles(fleet, seconds=30)

    async def test_a_leader_that_drains_is_succeeded_at_once(
        self, zookeeper_hosts: str, database_url: str, programs: Programs
    ) -> None:
        first = programs.coordinator(database_url, zookeeper_hosts, name="c1", **FAST)
        await until(lambda: contenders(zookeeper_hosts) == ["c1"], seconds=30)
        async with coordinator_on(settings_for(zookeeper_hosts, database_url), "c2.0") as second:
            await until(lambda: len(contenders(zookeeper_hosts)) == 2)
            assert second.leader is None
            first.terminate()
            await until(lambda: second.leader is not None)
            assert await asyncio.to_thread(first.wait) == 0

    async def test_no_write_of_a_stopped_leader_is_accepted(
        self, zookeeper_hosts: str, database_url: str, fleet: Fleet, programs: Programs
    ) -> None:
        """SIGSTOP for three sessions; when it goes on, another one has led and published for a while."""
        both = [programs.coordinator(database_url, zookeeper_hosts, name=name, **FAST) for name in ("c1", "c2")]
        leader, other = await leader_first(zookeeper_hosts, both)
        await fleet.join_all(["w1", "w2"])
        await settles(fleet, seconds=30)
        leader.pause()
        stopped_at = asyncio.get_running_loop().time()
        await fleet.join("w3")  # what the stopped one would publish when it goes on
        await until(lambda: contenders(zookeeper_hosts) == [other.name], seconds=3 * 2 * SESSION_SECONDS)
        await settles(fleet, seconds=30)
        await until(lambda: asyncio.get_running_loop().time() - stopped_at > 3 * SESSION_SECONDS)
        before = fleet.epoch
        leader.resume()
        await until(lambda: contenders(zookeeper_hosts) == [other.name, leader.name], seconds=30)  # it stands anew
        assert leader.running
        assert leader.events("leading no longer")
        await fleet.join("w4")
        await settles(fleet, seconds=30)
        by_the_stopped = [event["epoch"] for event in leader.events("assignment published")]
        assert max(by_the_stopped) < before
        assert fleet.epoch in [event["epoch"] for event in other.events("assignment published")]

    async def test_a_coordinator_whose_loop_hangs_ends(
        self, zookeeper_hosts: str, database_url: str, programs: Programs, tmp_path: Path
    ) -> None:
        """kazoo's threads would keep its session, and so its leadership, for ever."""
        hang = "import time, ringcron_coordinator.leader as l; l.Leader.step = lambda self: time.sleep(3600)"
        (tmp_path / "sitecustomize.py").write_text(hang)
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        hung = programs.coordinator(
            database_url, zookeeper_hosts, name="c1", environment={"PYTHONPATH": path}, **FAST | {"session_seconds": 1}
        )
        assert await asyncio.to_thread(hung.wait, 30) == 70
        assert "the coordinator has hung" in hung.text()
        await until(lambda: contenders(zookeeper_hosts) == [], seconds=10)


class TestTerms:
    async def test_a_deposed_leaders_write_is_refused_also_after_the_tree_was_made_anew(
        self, session: Session, zookeeper_hosts: str, database_url: str
    ) -> None:
        """A plain compare-and-set would accept it: the new assignment starts at the version that was read."""
        settings = settings_for(zookeeper_hosts, database_url, quiet_seconds=0.0)
        election = Election(session, "old.0", lambda: None)
        node = await election.contend()
        assert node is not None
        tree = Tree(session, lambda: None)
        leader = Leader(settings, tree, id="old.0", node=node, ring_size=SLOT_COUNT, clock=SystemClock())
        with zookeeper_client(zookeeper_hosts) as client:
            client.delete("/leader", recursive=True)
            client.create("/leader/new.0-0000000000", makepath=True, ephemeral=True)
            assert await leader.step() is Published.DEPOSED
            assert not client.exists("/assignment")
            client.create("/assignment", b"of the new leader")
            assert await tree.publish(b"x", over=await tree.assignment(), while_exists=node) is Published.DEPOSED
            assert client.get("/assignment")[0] == b"of the new leader"
        assert await until(election.contend)  # and it may stand again

    async def test_an_assignment_that_is_lost_again_before_anybody_looked_is_made_again(
        self, session: Session, zookeeper_hosts: str, database_url: str
    ) -> None:
        """The second loss looks like the first: once it was taken for it, and nobody owned a slot any more."""
        settings = settings_for(zookeeper_hosts, database_url, quiet_seconds=0.0)
        node = await Election(session, "c.0", lambda: None).contend()
        assert node is not None
        leader = Leader(
            settings, Tree(session, lambda: None), id="c.0", node=node, ring_size=SLOT_COUNT, clock=SystemClock()
        )
        with zookeeper_client(zookeeper_hosts) as client:
            for _ in range(3):
                assert await leader.step() is Published.DONE
                client.delete("/assignment")

    async def test_a_second_contender_of_ours_is_deleted(self, session: Session, zookeeper_hosts: str) -> None:
        """Left by a creation whose answer was lost; it would block everybody as long as we live."""
        election = Election(session, "c.0", lambda: None)
        first = await election.contend()
        prefix = f"{session.root}/leader/c.0-"
        await session.call(lambda client: client.create_async(prefix, ephemeral=True, sequence=True))
        assert await election.contend() == first
        with zookeeper_client(zookeeper_hosts) as client:
            assert len(client.get_children("/leader")) == 1
            await election.withdraw()
            assert client.get_children("/leader") == []

    async def test_who_loses_its_node_leads_no_longer_and_may_lead_again(
        self, zookeeper_hosts: str, database_url: str, fleet: Fleet
    ) -> None:
        async with coordinator_on(settings_for(zookeeper_hosts, database_url)) as coordinator:
            term = await until(lambda: coordinator.leader)
            with zookeeper_client(zookeeper_hosts) as client:
                (name,) = client.get_children("/leader")
                client.delete(f"/leader/{name}")
            await until(lambda: coordinator.leader not in (None, term))
            assert metric("ringcron_coordinator_leader") == 1
            await fleet.join("w1")
            await settles(fleet)
        assert metric("ringcron_coordinator_leader") == 0
