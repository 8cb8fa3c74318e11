"""The flags that say when: --in, --at, --cron, --every, and what goes with them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from ringcron.cli.flags import duration_flag, instant_flag, number_flag, text_flag
from ringcron.client import Cron, Every

In = Annotated[timedelta | None, duration_flag("Once, so long from now: 3s, 15m, 1h30m.", "--in")]
At = Annotated[datetime | None, instant_flag("Once: 2027-01-31T09:00:00Z, or with an offset such as +01:00.", "--at")]
CronFlag = Annotated[
    str | None, text_flag("At each tick of a cron expression of five fields.", "--cron", metavar="EXPR")
]
Timezone = Annotated[str | None, text_flag("Of --cron, as Europe/Madrid; default UTC.", "--timezone", metavar="TZ")]
EveryFlag = Annotated[timedelta | None, duration_flag("Again and again, so long apart: 20s, PT15M.", "--every")]
Anchor = Annotated[datetime | None, instant_flag("A tick of --every; default: the instant of creation.", "--anchor")]
StartAt = Annotated[datetime | None, instant_flag("No tick before it.", "--start-at")]
EndAt = Annotated[datetime | None, instant_flag("No tick after it.", "--end-at")]
MaxRuns = Annotated[int | None, number_flag("Done after so many occurrences.", "--max-runs")]


def schedule_from(
    *,
    cron: str | None,
    timezone: str | None,
    every: timedelta | None,
    anchor: datetime | None,
    start_at: datetime | None,
    end_at: datetime | None,
    max_runs: int | None,
) -> Cron | Every | None:
    """The schedule that the flags name; None where they name none. BadParameter where they do not go together."""
    _goes_with("--cron", cron, {"--timezone": timezone})
    _goes_with("--every", every, {"--anchor": anchor})
    _goes_with("--cron or --every", cron or every, {"--start-at": start_at, "--end-at": end_at, "--max-runs": max_runs})
    if cron is not None:
        return Cron(cron, timezone=timezone or "UTC", start_at=start_at, end_at=end_at, max_runs=max_runs)
    if every is not None:
        return Every(every, anchor=anchor, start_at=start_at, end_at=end_at, max_runs=max_runs)
    return None


def one_of(**given: object) -> None:
    """BadParameter unless exactly one of these flags was given."""
    named = [flag for flag, value in given.items() if value is not None]
    if len(named) != 1:
        flags = [f"--{name}" for name in given]
        raise typer.BadParameter(f"give exactly one of {', '.join(flags[:-1])} and {flags[-1]}")


def _goes_with(other: str, given: object, flags: dict[str, object]) -> None:
    for flag, value in flags.items():
        if value is not None and given is None:
            raise typer.BadParameter(f"goes with {other} only", param_hint=flag)
