"""What happens in one seed: the fleet, the jobs and the faults, all drawn beforehand.

Invariant: a plan is a function of its seed and mode; a fault can be left out of it without changing the others,
which is how a failing plan is made shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, Literal

Mode = Literal["safety", "liveness"]

LEASE_SECONDS: Final = 6.0
SESSION_SECONDS: Final = 4.0
POLL_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 0.5
QUIET_CAP_SECONDS: Final = 2.0
ACK_SECONDS: Final = 2.0
SLOTS: Final = 64
UNNOTICED_SECONDS: Final = 0.5
"""A step of the database's clock that nobody notices. It fits into the margin of a lease (a tenth); 0.7 does not,
and took a lease of six seconds away that its worker still trusted in (seed 11048): `lease_seconds` says so."""
HANDLERS: Final = ("first", "second")
MOST_BUSY: Final = 0.7
"""Share of the places that recurring jobs may fill where liveness is asked for: the rest is for retries."""

_Worker = tuple[str, int, tuple[str, ...]]
"""Name, capacity, handlers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlan:
    """A job: a one-off at `at`, or one that recurs from then on.

    Its handler takes `seconds`, fails the first `failures` attempts and goes on for `stubborn` seconds when it is asked
    to stop.
    """

    number: int
    at: float
    slot: int
    handler: str
    every: int | None
    overlap: str
    catchup: str
    seconds: float
    failures: int
    stubborn: float
    inserted_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """From `at` on, for `seconds` where that means something; `target` is a seat or empty."""

    kind: str
    at: float
    seconds: float = 0.0
    target: str = ""
    share: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """`quiet_at`: when the faults are over; `end`: when the history is, at the latest."""

    seed: int
    mode: Mode
    workers: tuple[_Worker, ...]
    coordinators: tuple[str, ...]
    jobs: tuple[JobPlan, ...]
    faults: tuple[Fault, ...]
    quiet_at: float
    end: float
    database_is_fast: bool


_Draw = Callable[[Random, str, str], dict[str, Any]]
"""The rest of a fault, given some worker and some coordinator."""

_KINDS: Final[dict[str, tuple[int, _Draw]]] = {
    "kill": (4, lambda r, w, c: {"target": r.choice((w, w, c)), "seconds": r.choice((0.1, 2, 5, 12))}),
    "drain": (2, lambda r, w, c: {"target": r.choice((w, w, c)), "seconds": r.choice((0.1, 3))}),
    "stop": (4, lambda r, w, c: {"target": r.choice((w, w, c)), "seconds": r.uniform(0.5, 2 * LEASE_SECONDS)}),
    "suspend": (2, lambda r, w, c: {"target": r.choice((w, w, c)), "seconds": r.uniform(0.5, 2 * LEASE_SECONDS)}),
    "cut from ZooKeeper": (3, lambda r, w, c: {"target": r.choice((w, w, c)), "seconds": r.uniform(0.5, 10)}),
    "cut from the database": (3, lambda r, w, c: {"target": w, "seconds": r.uniform(0.5, 10)}),
    "expire session": (2, lambda r, w, c: {"target": r.choice((w, c))}),
    "break kazoo": (1, lambda r, w, c: {"target": r.choice((w, c))}),
    "freeze ZooKeeper": (1, lambda r, w, c: {"seconds": r.uniform(0.5, 8)}),
    "restart ZooKeeper": (1, lambda r, w, c: {"seconds": r.uniform(0.3, 5)}),
    "slow ZooKeeper": (2, lambda r, w, c: {"seconds": r.uniform(2, 8), "share": r.uniform(5, 150)}),
    "lose the assignment": (1, lambda r, w, c: {}),
    "lose the tree": (1, lambda r, w, c: {}),
    "freeze the database": (2, lambda r, w, c: {"seconds": r.uniform(0.5, 9)}),
    "restart the database": (1, lambda r, w, c: {"seconds": r.choice((0.05, 1, 4, 8))}),
    "slow database": (2, lambda r, w, c: {"seconds": r.uniform(2, 8), "share": r.uniform(5, 100)}),
    "lose answers": (4, lambda r, w, c: {"seconds": r.uniform(2, 10), "share": r.choice((0.05, 0.2, 0.5))}),
    "step the database's clock": (
        2,
        lambda r, w, c: {"share": r.choice((-20.0, -3.0, UNNOTICED_SECONDS, 3.0, 8.0, 60.0))},
    ),
}
KINDS: Final = tuple(_KINDS)
_WEIGHED: Final = tuple(kind for kind, (weight, _) in _KINDS.items() for _ in range(weight))


def make_plan(seed: int, mode: Mode) -> Plan:
    """The plan of a seed."""
    random = Random(f"{mode} {seed}")
    quiet_at = random.uniform(9, 15) if mode == "safety" else random.uniform(4, 9)
    workers = tuple(_worker(random, number) for number in range(random.choice((2, 2, 3, 3, 4))))
    coordinators = tuple(f"c{number}" for number in range(random.choice((1, 1, 2))))
    faults = [
        _fault(random, random.uniform(1, quiet_at), workers, coordinators)
        for _ in range(random.randint(2, 6 if mode == "safety" else 4))
    ]
    jobs = tuple(_job(random, number, quiet_at) for number in range(random.randint(4, 10)))
    return Plan(
        seed=seed,
        mode=mode,
        workers=workers,
        coordinators=coordinators,
        jobs=jobs if mode == "safety" else _lightened(workers, jobs),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        quiet_at=quiet_at,
        end=quiet_at + (2 if mode == "safety" else 120),
        database_is_fast=random.random() < 0.8,
    )


def is_overloaded(workers: tuple[_Worker, ...], jobs: tuple[JobPlan, ...]) -> bool:
    """Whether the recurring jobs need more places than `MOST_BUSY` of what the workers of their handlers have.

    An overloaded fleet falls ever farther behind, which nobody promised away. No job can need more than one place,
    but one that keeps its ticks must be done with each before the next.
    """
    recurring = [(job, (job.seconds + job.stubborn) / job.every) for job in jobs if job.every is not None]
    if any(need > MOST_BUSY for job, need in recurring if job.overlap == "buffer_all"):
        return True
    for handlers in ({HANDLERS[0]}, {HANDLERS[1]}, set(HANDLERS)):
        places = sum(capacity for _, capacity, has in workers if handlers & set(has))
        if sum(min(1.0, need) for job, need in recurring if job.handler in handlers) > MOST_BUSY * places:
            return True
    return False


def _lightened(workers: tuple[_Worker, ...], jobs: tuple[JobPlan, ...]) -> tuple[JobPlan, ...]:
    """The jobs, as many of the last recurring ones made one-offs as let the fleet keep up."""
    light = list(jobs)
    for number in reversed(range(len(jobs))):
        if not is_overloaded(workers, tuple(light)):
            break
        light[number] = replace(light[number], every=None)
    return tuple(light)


def _worker(random: Random, number: int) -> _Worker:
    return f"w{number}", random.choice((1, 2, 5)), HANDLERS if number == 0 or random.random() < 0.8 else HANDLERS[:1]


def _fault(random: Random, at: float, workers: Any, coordinators: Any) -> Fault:
    kind = random.choice(_WEIGHED)
    return Fault(kind=kind, at=at, **_KINDS[kind][1](random, random.choice(workers)[0], random.choice(coordinators)))


def _job(random: Random, number: int, quiet_at: float) -> JobPlan:
    at = random.uniform(0, quiet_at)
    return JobPlan(
        number=number,
        at=at,
        slot=random.randrange(SLOTS),
        handler=random.choice(HANDLERS),
        every=random.choice((None, None, 3, 7)),
        overlap=random.choice(("skip", "buffer_one", "buffer_all", "cancel_other")),
        catchup=random.choice(("latest", "all", "none")),
        seconds=random.choice((0.02, 0.3, 1.5, 5.0, 9.0)),
        failures=random.choice((0, 0, 0, 1, 2)),
        stubborn=random.choice((0, 0, 0, 0, 0.3, 3.0)),
        inserted_at=random.choice((0.0, max(0.0, at - 1))),
    )
