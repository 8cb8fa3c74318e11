"""What each kind of fault does to a world, and how it is mended.

Invariant: after `mend` nothing is broken any more: every seat is taken by a process that runs, every way is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.plan import Fault
from tests.simulation.process import Process
from tests.simulation.world import World


def schedule(world: World, fault: Fault) -> None:
    """Have a fault happen."""
    world.loop.after(fault.at, _strike, world, fault)


def _strike(world: World, fault: Fault) -> None:
    target = world.seats.get(fault.target)
    if fault.target and (target is None or not target.alive):
        return
    world.trace("fault", target.id if target else "", f"{fault.kind} {fault.seconds:.2f} s {fault.share:g}")
    _KINDS[fault.kind](world, fault, target)


def _kill(world: World, fault: Fault, target: Any) -> None:
    target.die()
    world.loop.after(fault.seconds, world.start, fault.target)


def _drain(world: World, fault: Fault, target: Process) -> None:
    world.loop.post(target, 0, target.drain.set)

    def start_again() -> None:
        if target.alive:
            world.loop.after(1, start_again)
        else:
            world.loop.after(fault.seconds, world.start, fault.target)

    world.loop.after(1, start_again)


def _stop(world: World, fault: Fault, target: Process) -> None:
    if target.stopped_at is not None:
        return
    for client in _clients(world, target):
        client._cut() if client._connected else None
    target.stopped_at = world.loop.now
    target.suspended = fault.kind == "suspend"
    world.loop.after(fault.seconds, _resume, world, target)


def _resume(world: World, target: Process) -> None:
    if target.alive and target.stopped_at is not None:
        world.trace("resumed", target.id, "")
        world.loop.resume(target)


def _cut_from_zookeeper(world: World, fault: Fault, target: Process) -> None:
    world.cut_from_zookeeper.add(target.id)
    _cut_off(world, _clients(world, target))
    world.loop.after(fault.seconds, world.cut_from_zookeeper.discard, target.id)


def _cut_off(world: World, clients: list[Any]) -> None:
    for client in clients:
        client.cut_off(world.random.uniform(0.2, 0.45) * client._timeout)


def _clients(world: World, process: Process | None = None) -> list[Any]:
    world.kazoo_clients = [client for client in world.kazoo_clients if client._process.alive and not client._stopped]
    return [client for client in world.kazoo_clients if process in (None, client._process)]


def _cut_from_database(world: World, fault: Fault, target: Process) -> None:
    world.cut_from_database.add(target.id)
    world.loop.after(fault.seconds, world.cut_from_database.discard, target.id)


def _expire(world: World, fault: Fault, target: Process) -> None:
    for client in _clients(world, target):
        if client._session is not None and not client._session.ended:
            world.robbed_at[target.id] = world.loop.now
            world.expire(client._session, client)


def _break_kazoo(world: World, fault: Fault, target: Process) -> None:
    for client in _clients(world, target):
        world.loop.post(target, 0, client.break_down)


def _freeze_zookeeper(world: World, fault: Fault, target: None) -> None:
    world.freeze_zookeeper(True)
    _cut_off(world, _clients(world))
    world.loop.after(fault.seconds, world.freeze_zookeeper, False)


def _restart_zookeeper(world: World, fault: Fault, target: None) -> None:
    world.stop_zookeeper(True)
    for client in _clients(world):
        client.cut_off(world.random.uniform(0, 0.05))
    world.loop.after(fault.seconds, world.stop_zookeeper, False)


def _slow_zookeeper(world: World, fault: Fault, target: None) -> None:
    world.zookeeper_factor = fault.share
    world.loop.after(fault.seconds, setattr, world, "zookeeper_factor", 1.0)


def _lose_the_assignment(world: World, fault: Fault, target: None) -> None:
    world.zookeeper.delete_tree("/assignment")


def _lose_the_tree(world: World, fault: Fault, target: None) -> None:
    for top in ("/assignment", "/workers", "/leader"):
        world.zookeeper.delete_tree(top)
    world.robbed_at.update((process.id, world.loop.now) for process in world.processes)


def _freeze_database(world: World, fault: Fault, target: None) -> None:
    world.freeze_database(True)
    world.loop.after(fault.seconds, world.freeze_database, False)


def _restart_database(world: World, fault: Fault, target: None) -> None:
    world.stop_database(True)
    world.loop.after(fault.seconds, world.stop_database, False)


def _slow_database(world: World, fault: Fault, target: None) -> None:
    world.database_factor = fault.share
    world.loop.after(fault.seconds, setattr, world, "database_factor", 1.0)


def _lose_answers(world: World, fault: Fault, target: None) -> None:
    world.loss_share = fault.share
    world.loop.after(fault.seconds, setattr, world, "loss_share", 0.0)


def _step_clock(world: World, fault: Fault, target: None) -> None:
    world.step_seconds += fault.share


_KINDS: Final[dict[str, Callable[[World, Fault, Any], object]]] = {
    "kill": _kill,
    "drain": _drain,
    "stop": _stop,
    "suspend": _stop,
    "cut from ZooKeeper": _cut_from_zookeeper,
    "cut from the database": _cut_from_database,
    "expire session": _expire,
    "break kazoo": _break_kazoo,
    "freeze ZooKeeper": _freeze_zookeeper,
    "restart ZooKeeper": _restart_zookeeper,
    "slow ZooKeeper": _slow_zookeeper,
    "lose the assignment": _lose_the_assignment,
    "lose the tree": _lose_the_tree,
    "freeze the database": _freeze_database,
    "restart the database": _restart_database,
    "slow database": _slow_database,
    "lose answers": _lose_answers,
    "step the database's clock": _step_clock,
}


def mend(world: World) -> None:
    """The end of all faults."""
    world.trace("mended", "", "no fault from here on")
    world.cut_from_zookeeper.clear()
    world.cut_from_database.clear()
    world.zookeeper_factor = world.database_factor = 1.0
    world.loss_share = 0.0
    if world.zookeeper_frozen:
        world.freeze_zookeeper(False)
    if world.zookeeper_down:
        world.stop_zookeeper(False)
    if world.database_frozen:
        world.freeze_database(False)
    world.stop_database(False)
    for process in world.processes:
        _resume(world, process)
    supervise(world)


def supervise(world: World) -> None:
    """What ended, also by itself at the end of its trust, is started again."""
    for seat in world.seats:
        world.start(seat)
