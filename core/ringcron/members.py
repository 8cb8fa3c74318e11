"""Members: the live workers, as their nodes in ZooKeeper say.

Invariant: reading is total. Whatever stands in a member's node, the other members are read; a node that cannot be
understood is passed over and named with its reason, never fatal. Each worker is authoritative for its own node, and
ZooKeeper for who is alive: a node whose data is rubbish is not planned with, but its session still counts as alive.

An incarnation is a worker id together with the czxid of its node. A worker that registers again after its session was
lost is another incarnation: what was granted to the old one is not its own any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from ringcron.handlers import HANDLER_NAME

CAPACITY_LIMIT: Final = 1_000_000
HANDLERS_LIMIT: Final = 1_000
EPOCH_LIMIT: Final = 1 << 62  # the epoch after it must still fit into JSON's 64 bits


class Incarnation(NamedTuple):
    """One registration of one worker."""

    id: str
    czxid: int


class Ack(NamedTuple):
    """The last epoch whose revocations a worker has carried out, and of which lineage that assignment was."""

    epoch: int = 0
    lineage: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberNode:
    """A node under `workers`, as read."""

    id: str
    data: bytes
    czxid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A live worker."""

    incarnation: Incarnation
    name: str
    capacity: int
    handlers: tuple[str, ...]
    version: str
    acked: Ack


class MemberFault(NamedTuple):
    """Why a node was passed over."""

    id: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Members:
    """One reading of the whole membership.

    `planned`: whom slots may be given to, by id. `live`: every incarnation with a live session and what it has
    acknowledged (nothing where its node does not say). `faults`: the nodes passed over.
    """

    planned: tuple[Member, ...]
    live: Mapping[Incarnation, Ack]
    faults: tuple[MemberFault, ...]


def encode_member(*, name: str, capacity: int, handlers: Iterable[str], version: str, acked: Ack) -> bytes:
    """What a worker writes into its node."""
    return orjson.dumps(
        {
            "name": name,
            "capacity": capacity,
            "handlers": sorted(set(handlers)),
            "version": version,
            "acked": acked.epoch,
            "lineage": acked.lineage,
        }
    )


def read_members(nodes: Iterable[MemberNode]) -> Members:
    """Understand the nodes under `workers`, in whatever order they come.

    Of two incarnations of one name the later registered (larger czxid) is planned with and the other named as a fault.
    Fields that are not known here are ignored: a newer worker may write them.
    """
    live: dict[Incarnation, Ack] = {}
    newest: dict[str, Member] = {}
    faults: list[MemberFault] = []
    for node in sorted(nodes, key=lambda node: (node.czxid, node.id)):
        live[Incarnation(node.id, node.czxid)] = Ack()
        try:
            member = _read_member(node)
        except _Fault as fault:
            faults.append(MemberFault(node.id, str(fault)))
            continue
        live[member.incarnation] = member.acked
        older = newest.get(member.name)
        if older is not None:
            reason = f"the name {member.name!r} belongs to {member.incarnation.id}, which registered later"
            faults.append(MemberFault(older.incarnation.id, reason))
        newest[member.name] = member
    planned = tuple(sorted(newest.values(), key=lambda member: member.incarnation))
    return Members(planned=planned, live=live, faults=tuple(faults))


class _Fault(Exception):
    """What is wrong with a node's data."""


def _read_member(node: MemberNode) -> Member:
    try:
        document = orjson.loads(node.data)
    except orjson.JSONDecodeError as error:
        raise _Fault(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _Fault("not a JSON object")
    name = document.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= 255:
        raise _Fault("`name` is not a text of 1 to 255 characters")
    handlers = document.get("handlers")
    if not isinstance(handlers, list) or len(handlers) > HANDLERS_LIMIT:
        raise _Fault(f"`handlers` is not a list of at most {HANDLERS_LIMIT} names")
    for handler in handlers:
        if not isinstance(handler, str) or not HANDLER_NAME.fullmatch(handler):
            raise _Fault(f"`handlers` holds {handler!r:.100}, which is not a handler's name")
    version, lineage = document.get("version"), document.get("lineage")
    return Member(
        incarnation=Incarnation(node.id, node.czxid),
        name=name,
        capacity=_whole_number(document, "capacity", CAPACITY_LIMIT),
        handlers=tuple(sorted(set(handlers))),
        version=version if isinstance(version, str) else "",
        acked=Ack(_whole_number(document, "acked", EPOCH_LIMIT), lineage if isinstance(lineage, str) else ""),
    )


def _whole_number(document: Mapping[str, Any], field: str, limit: int) -> int:
    value = document.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise _Fault(f"`{field}` is not a whole number from 0 to {limit}")
    return value
