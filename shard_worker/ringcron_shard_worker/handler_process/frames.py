"""Messages between a worker and its handler processes: JSON, each behind its length in four bytes.

To the handler process: `hello` once, then `run`, and `stop` while a run goes on.
From it: `ready` or `unready` once, then `begun` and `ended` for each run.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, Final

import orjson

HEADER: Final = struct.Struct("!I")

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """One message as it goes over the socket. TypeError for what is not JSON."""
    body = orjson.dumps(message)
    return HEADER.pack(len(body)) + body


def unpack(body: bytes) -> Message:
    """The message in a body (without its length)."""
    message: Message = orjson.loads(body)
    return message


def body_length(header: bytes) -> int:
    """How long the body behind this header is."""
    length: int = HEADER.unpack(header)[0]
    return length


def read_message(stream: BinaryIO) -> Message | None:
    """The next message, waiting for it; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length = body_length(header)
    body = stream.read(length)
    return unpack(body) if len(body) == length else None
