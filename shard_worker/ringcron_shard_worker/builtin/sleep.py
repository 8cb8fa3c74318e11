"""`sleep`: {"seconds": S} waits so long; for trying things out."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ringcron.handlers import HandlerRegistry, RunContext
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.builtin.payload import Payload

LONGEST_SECONDS: Final = 7 * 86400.0


async def sleep(_: RunContext, payload: Any) -> dict[str, float]:
    """Wait `seconds`, from 0 to a week."""
    fields = Payload(payload, fields=("seconds",))
    fields.required("seconds")
    seconds = fields.number("seconds", least=0, most=LONGEST_SECONDS)
    fields.check()
    assert seconds is not None
    await asyncio.sleep(seconds)
    return {"slept": seconds}


def register(registry: HandlerRegistry, _: BuiltinSettings) -> None:
    registry.register("sleep", sleep)
