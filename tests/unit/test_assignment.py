"""The assignment as it lies in ZooKeeper, and what it grants."""

from __future__ import annotations

import zlib
from dataclasses import replace
from random import Random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.assignment import SIZE_LIMIT, Assignment, Cell, Ring, decode, encode
from ringcron.errors import BadAssignment, ForeignAssignment
from ringcron.members import Incarnation
from ringcron.models import Arc, Slice
from ringcron.ring import arcs
from ringcron_coordinator.planner import plan
from tests.unit.test_planner import member

A, B, C = (Incarnation(f"{name}.0a1b2c3d", 10 + number) for number, name in enumerate("abc"))
OWNERS = st.sampled_from([None, A, B, C])
CELLS = OWNERS.map(Cell) | st.tuples(OWNERS, OWNERS, st.integers(1, 2**62)).map(lambda parts: Cell(*parts))


def assignment(*rings: Ring, size: int = 64, members: tuple[Incarnation, ...] = (A, B)) -> Assignment:
    return Assignment(
        epoch=7,
        lineage="l1",
        ring_size=size,
        members=members,
        rings=rings,
        leader="coordinator-1.00000000",
        cause="“a” joined",
    )


def on_ring(cells: list[Cell], *handlers: str) -> Ring:
    return Ring(handlers=handlers or ("log",), arcs=arcs(cells))


@given(st.lists(st.lists(CELLS, min_size=8, max_size=8), max_size=3), st.integers(0, 2**62))
def test_what_was_written_is_read(rings: list[list[Cell]], epoch: int) -> None:
    on_rings = [on_ring([cell for cell in cells for _ in range(8)], f"h{n}") for n, cells in enumerate(rings)]
    written = replace(assignment(*on_rings), epoch=epoch)
    assert decode(encode(written), 64) == written


def test_an_incarnation_is_granted_what_it_owns_and_what_is_not_in_transit() -> None:
    cells = [Cell(owner=A)] * 10 + [Cell(owner=A, to=B, since=7)] * 10 + [Cell(owner=B)] * 10 + [Cell()] * 10
    cells += [Cell(to=A, since=7)] * 10 + [Cell(owner=A)] * 14
    published = assignment(on_ring(cells, "http", "log"), on_ring([Cell(owner=B)] * 64, "gpu"))
    assert published.granted(A) == (Slice(handlers=("http", "log"), arcs=(Arc(lo=0, hi=9), Arc(lo=50, hi=63))),)
    assert [part.handlers for part in published.granted(B)] == [("http", "log"), ("gpu",)]
    assert published.granted(A._replace(czxid=99)) == ()  # registered again: not the one to whom it was granted


def test_what_nobody_owns() -> None:
    assert assignment().unowned() == (Arc(lo=0, hi=63),)
    cells = [Cell(owner=A)] * 60 + [Cell()] * 2 + [Cell(to=A, since=7)] * 2
    assert assignment(on_ring(cells)).unowned() == (Arc(lo=60, hi=61), Arc(lo=62, hi=63))


def test_200_workers_fit_into_a_znode_even_all_in_transit_on_ten_rings() -> None:
    fleet = [
        member(f"a-rather-long-worker-name-{number:03}.production.example", handlers=tuple("abcdefghij"[number % 11 :]))
        for number in range(200)
    ]
    planned = plan(fleet, 4096)
    moving = tuple(
        Ring(
            handlers=ring.handlers,
            arcs=tuple((arc, Cell(cell.owner, fleet[arc.lo % 200].incarnation, 2**40)) for arc, cell in ring.arcs),
        )
        for ring in planned
    )
    members = tuple(sorted(one.incarnation for one in fleet))
    data = encode(assignment(*moving, size=4096, members=members))
    assert len(planned) == 10
    assert len(data) < SIZE_LIMIT / 10


def test_a_too_large_assignment_is_refused_before_it_is_sent() -> None:
    random = Random(0)
    everybody = tuple(Incarnation(random.randbytes(100).hex(), number) for number in range(12_000))
    with pytest.raises(BadAssignment, match="a znode may have"):
        encode(assignment(members=everybody))


def test_another_format_or_ring_size_is_not_read() -> None:
    data = encode(assignment(on_ring([Cell(owner=A)] * 64)))
    with pytest.raises(ForeignAssignment, match="for 64 slots, this program has 4096"):
        decode(data, 4096)
    document = {**orjson.loads(zlib.decompress(data)), "format": 2}
    with pytest.raises(ForeignAssignment, match="format 2"):
        decode(zlib.compress(orjson.dumps(document)), 64)


@given(
    st.binary(max_size=80)
    | st.binary(max_size=80).map(zlib.compress)
    | st.dictionaries(st.sampled_from(["format", "slots", "rings", "epoch"]), st.just(1))
    .map(orjson.dumps)
    .map(zlib.compress)
)
def test_junk_is_a_bad_assignment_and_nothing_else(data: bytes) -> None:
    with pytest.raises(BadAssignment):
        decode(data, 64)


@pytest.mark.parametrize(
    "change",
    [
        {"rings": [{"handlers": ["log"], "arcs": []}]},
        {"rings": [{"handlers": ["log"], "arcs": [[1, 0]]}]},
        {"rings": [{"handlers": ["log"], "arcs": [[0, 0], [0, 1]]}]},
        {"rings": [{"handlers": ["log"], "arcs": [[0, 0], [64, 1]]}]},
        {"rings": [{"handlers": ["log"], "arcs": [[0, 5]]}]},
        {"members": [9]},
        {"epoch": "x"},
        {"incarnations": [["a"]]},
    ],
)
def test_a_document_that_contradicts_itself_is_refused(change: dict[str, object]) -> None:
    document = orjson.loads(zlib.decompress(encode(assignment(on_ring([Cell(owner=A)] * 64)))))
    with pytest.raises(BadAssignment):
        decode(zlib.compress(orjson.dumps({**document, **change})), 64)
