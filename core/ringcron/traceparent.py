"""The headers `traceparent` and `tracestate` of W3C Trace Context: which trace a call belongs to, and what tracing
systems say of it.

Invariant: what is kept or passed on is well-formed. A header that is not is ignored, as the recommendation asks, and
never a reason to refuse a call. There is no tracestate without a traceparent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_FORM: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
)

STATE_LENGTH: Final = 512
"""Characters of a tracestate that are kept."""
_MEMBERS: Final = 32
_MEMBER: Final = re.compile(
    r"(?P<key>[a-z][-_*/0-9a-z]{0,255}|[0-9a-z][-_*/0-9a-z]{0,240}@[a-z][-_*/0-9a-z]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)


class CallTrace(NamedTuple):
    """The trace that a call belongs to, as it is kept with a job."""

    traceparent: str
    tracestate: str | None


class TraceParent(NamedTuple):
    """A span of somebody's trace."""

    trace_id: int
    span_id: int
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def parse_traceparent(text: str | None) -> TraceParent | None:
    """None where there is none that can be understood. Of a later version the part that is known is taken."""
    form = _FORM.match((text or "").strip())
    if form is None or form["version"] == "ff":
        return None
    rest = (text or "").strip()[form.end() :]
    if rest and (form["version"] == "00" or not rest.startswith("-")):
        return None
    trace_id, span_id = int(form["trace"], 16), int(form["span"], 16)
    return TraceParent(trace_id, span_id, int(form["flags"], 16)) if trace_id and span_id else None


def parse_tracestate(texts: Sequence[str]) -> str | None:
    """The members of all these headers, in their order. None where there are none, or any of them is malformed or comes
    twice, or they are too many or too long."""
    members = [member.strip(" \t") for text in texts for member in text.split(",")]
    members = [member for member in members if member]
    forms = [_MEMBER.fullmatch(member) for member in members]
    keys = {form["key"] for form in forms if form is not None}
    joined = ",".join(members)
    sound = 0 < len(members) == len(keys) <= _MEMBERS and len(joined) <= STATE_LENGTH
    return joined if sound else None


def call_trace(traceparent: str | None, tracestates: Sequence[str]) -> CallTrace | None:
    """What the headers of a call say of its trace."""
    parent = parse_traceparent(traceparent)
    return None if parent is None else CallTrace(str(parent), parse_tracestate(tracestates))
