"""The coordinator program: settings, service."""

from __future__ import annotations

import asyncio
import secrets

from ringcron import service
from ringcron.clock import SystemClock
from ringcron.settings import CoordinatorSettings
from ringcron_coordinator.coordinator import Coordinator


def main(settings: CoordinatorSettings) -> int:
    """Run a coordinator until it is asked to drain; returns the exit code of the process."""
    coordinator_id = f"{settings.name}.{secrets.token_hex(4)}"

    async def body(drain: asyncio.Event) -> None:
        await Coordinator(settings, id=coordinator_id, clock=SystemClock()).run(drain)

    return service.run(
        "coordinator",
        settings,
        body,
        name=coordinator_id,
        metrics_port=settings.metrics_port,
        metrics_host=settings.metrics_host,
    )


if __name__ == "__main__":
    raise SystemExit("start it as: ringcron coordinator")
