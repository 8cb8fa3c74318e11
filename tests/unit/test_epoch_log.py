"""What is noted of a published assignment."""

from __future__ import annotations

from ringcron.assignment import Assignment, Cell, Ring
from ringcron.members import Incarnation
from ringcron.models import Arc
from ringcron_coordinator.epoch_log import note_of

A, B = Incarnation("a.1", 1), Incarnation("b.1", 2)


def assignment(epoch: int, *cells: tuple[int, int, Cell], members: tuple[Incarnation, ...] = (A, B)) -> Assignment:
    arcs = tuple((Arc(lo=lo, hi=hi), cell) for lo, hi, cell in cells)
    return Assignment(
        epoch=epoch,
        lineage="x",
        ring_size=100,
        members=members,
        rings=(Ring(handlers=("log",), arcs=arcs),),
        leader="c.1",
        cause="1 joined (b.1)",
    )


def test_what_moves_and_what_is_on_its_way() -> None:
    before = assignment(1, (0, 99, Cell(A)), members=(A,))
    moving = assignment(2, (0, 59, Cell(A)), (60, 99, Cell(A, B, 2)))
    note = note_of(before, moving)
    assert (note.epoch, note.cause, note.leader, note.members) == (2, "1 joined (b.1)", "c.1", 2)
    assert (note.slots_moved, note.slots_unowned) == (40, 0)
    assert [(one.arc.lo, one.arc.hi, one.giver, one.taker) for one in note.in_transit] == [(60, 99, "a.1", "b.1")]
    granted = note_of(moving, assignment(3, (0, 59, Cell(A)), (60, 99, Cell(B))))
    assert (granted.slots_moved, granted.in_transit) == (0, ())


def test_what_nobody_owns() -> None:
    first = note_of(None, assignment(1, (0, 89, Cell(A)), (90, 99, Cell())))
    assert (first.slots_moved, first.slots_unowned) == (90, 10)
