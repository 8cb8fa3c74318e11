"""The header `traceparent` of W3C Trace Context: which trace a call belongs to.

Invariant: what is kept or passed on is well-formed. A header that is not is ignored, as the recommendation asks, and
never a reason to refuse a call.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FORM: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
)


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
