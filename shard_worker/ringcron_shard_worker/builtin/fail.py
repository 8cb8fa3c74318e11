"""`fail`: fails, always or for the first attempts; for trying out retries and what follows them."""

from __future__ import annotations

from typing import Any, Final

from ringcron.handlers import Fail, HandlerRegistry, RunContext
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.builtin.payload import Payload

FIELDS: Final = ("message", "times", "retryAfter", "dead")


async def fail(ctx: RunContext, payload: Any) -> dict[str, int]:
    """Fail with `message` on attempts 1 to `times` (default: on all), asking for `retryAfter` seconds or for `dead`."""
    fields = Payload(payload, fields=FIELDS)
    message = fields.text("message")
    times = fields.number("times", least=0, most=2**31)
    retry_after = fields.number("retryAfter", least=0, most=86400)
    dead = fields.flag("dead")
    fields.check()
    if times is None or ctx.attempt <= times:
        raise Fail(message or "failed as asked", retry_after_seconds=retry_after, dead=bool(dead))
    return {"attempt": ctx.attempt}


def register(registry: HandlerRegistry, _: BuiltinSettings) -> None:
    registry.register("fail", fail)
