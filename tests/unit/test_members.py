"""Reading members is total: whatever one node holds, the others are read."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.members import EPOCH_LIMIT, Ack, Incarnation, MemberNode, encode_member, read_members

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={"name": JSON, "capacity": JSON, "handlers": JSON | st.lists(JSON), "version": JSON, "acked": JSON},
)
JUNK = st.binary(max_size=60) | JSON.map(orjson.dumps) | FIELDS.map(orjson.dumps)


def node(
    id: str, czxid: int, data: bytes | None = None, *, name: str = "w", capacity: int = 1, acked: int = 0
) -> MemberNode:
    good = encode_member(name=name, capacity=capacity, handlers=["log"], version="1", acked=Ack(acked, "l1"))
    return MemberNode(id=id, data=good if data is None else data, czxid=czxid)


def test_a_good_node_is_read() -> None:
    read = read_members([node("w.1", 7, name="w", capacity=3, acked=5)])
    (member,) = read.planned
    assert (member.incarnation, member.name, member.capacity) == (Incarnation("w.1", 7), "w", 3)
    assert (member.handlers, member.version, member.acked) == (("log",), "1", Ack(5, "l1"))
    assert read.live == {Incarnation("w.1", 7): Ack(5, "l1")}
    assert read.faults == ()


@given(st.lists(st.tuples(st.text(max_size=5), JUNK, st.integers(0, 5)), max_size=8))
def test_junk_is_passed_over_and_named_and_good_nodes_are_read(junk: list[tuple[str, bytes, int]]) -> None:
    nodes = [
        MemberNode(id=f"junk-{number}{id}", data=data, czxid=czxid) for number, (id, data, czxid) in enumerate(junk)
    ]
    read = read_members([*nodes, node("good.1", 99, name="a good one")])
    assert Incarnation("good.1", 99) in {member.incarnation for member in read.planned}
    assert {fault.id for fault in read.faults} | {member.incarnation.id for member in read.planned} == {
        one.id for one in [*nodes, node("good.1", 99)]
    }
    assert len(read.live) == len(nodes) + 1  # whoever has a session may still hold something


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\x00", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"capacity":1,"handlers":[],"acked":0}', "`name`"),
        (b'{"name":"w","capacity":-1,"handlers":[],"acked":0}', "`capacity`"),
        (b'{"name":"w","capacity":true,"handlers":[],"acked":0}', "`capacity`"),
        (b'{"name":"w","capacity":1e3,"handlers":[],"acked":0}', "`capacity`"),
        (b'{"name":"w","capacity":1,"handlers":"log","acked":0}', "`handlers`"),
        (b'{"name":"w","capacity":1,"handlers":["no spaces"],"acked":0}', "`handlers`"),
        (b'{"name":"w","capacity":1,"handlers":[]}', "`acked`"),
        (orjson.dumps({"name": "w", "capacity": 1, "handlers": [], "acked": EPOCH_LIMIT + 1}), "`acked`"),
    ],
)
def test_a_fault_says_what_is_wrong(data: bytes, reason: str) -> None:
    read = read_members([node("w.1", 1, data)])
    assert read.planned == ()
    (fault,) = read.faults
    assert fault.id == "w.1"
    assert reason in fault.reason


def test_a_newer_workers_unknown_fields_are_ignored() -> None:
    data = b'{"name":"w","capacity":1,"handlers":["log"],"acked":0,"version":"9","colour":"red"}'
    read = read_members([node("w.1", 1, data)])
    assert len(read.planned) == 1
    assert read.faults == ()


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_incarnations_of_one_name_the_later_wins_and_the_other_is_named(order: int) -> None:
    nodes = [node("w.old", 5, acked=3), node("w.new", 6)]
    read = read_members(nodes[::order])
    assert [member.incarnation.id for member in read.planned] == ["w.new"]
    assert [fault.id for fault in read.faults] == ["w.old"]
    assert "w.new" in read.faults[0].reason
    assert read.live == {Incarnation("w.old", 5): Ack(3, "l1"), Incarnation("w.new", 6): Ack(0, "l1")}


def test_capacity_0_is_no_fault() -> None:
    read = read_members([node("w.1", 1, capacity=0)])
    assert [member.capacity for member in read.planned] == [0]
    assert read.faults == ()
