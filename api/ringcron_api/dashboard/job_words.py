"""A job in words: its schedule, its state, its name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from ringcron.instants import format_instant
from ringcron.models import Job, RunOutcome
from ringcron.store.rows import UNREADABLE
from ringcron_api.dashboard.markup import Markup, tag

OUTCOME_MARKS: Final[Mapping[RunOutcome | None, tuple[str, str]]] = {
    RunOutcome.SUCCEEDED: ("✓", "good"),
    RunOutcome.FAILED: ("✕", "bad"),
    RunOutcome.TIMED_OUT: ("◷", "bad"),
    RunOutcome.CANCELLED: ("⊘", "off"),
    RunOutcome.LOST: ("?", "bad"),
    RunOutcome.INTERRUPTED: ("↺", "off"),
    None: ("▸", "going"),
}
"""A sign and a colour for each way that a run ends; None: it has not."""
_LOST_COUNT: Final = (
    "An attempt whose worker was lost counts, and is followed by another one even beyond maxAttempts: "
    "maxLost limits them."
)


def schedule_words(job: Job) -> str:
    """`0 9 * * MON-FRI Europe/Madrid`, `every PT15M`, `once`."""
    schedule = job.definition.schedule
    if schedule is None:
        return "once"
    if UNREADABLE in schedule:
        return "unreadable"
    if "cron" in schedule:
        return f"{schedule['cron']} {schedule.get('timezone') or 'UTC'}"
    return f"every {schedule.get('every')}"


def title_of(job: Job) -> str:
    """The name that people know it by: its name, its key, else its id."""
    return job.definition.name or job.definition.key or str(job.id)


def attempt_words(job: Job, between: str) -> Markup:
    """`2 of 5`; `2 (1 lost) of 1` where the last ones were lost; `2 (lost ones too) of 1` where earlier ones were."""
    most = job.definition.retry.max_attempts
    lost = f" ({job.lost} lost)" if job.lost else " (lost ones too)" if job.attempt > most else ""
    return tag("span", f"{job.attempt}{lost} {between} {most}", title=_LOST_COUNT if lost else None)


def state_pill(state: str) -> Markup:
    return tag("span", state, class_=f"pill {state}")


def outcome_sign(outcome: RunOutcome | None) -> Markup:
    """The sign and the word."""
    sign, name = OUTCOME_MARKS[outcome]
    word = "running" if outcome is None else outcome.value.replace("_", " ")
    return tag("span", tag("i", sign, aria_hidden="true"), f" {word}", class_=f"outcome {name}")


def json_text(value: Any) -> str:
    """JSON for reading: a payload or a result that was only passed on, laid out."""
    try:
        return orjson.dumps(orjson.loads(orjson.dumps(value)), option=orjson.OPT_INDENT_2).decode()
    except (orjson.JSONDecodeError, TypeError):
        return str(value)


def when_words(job: Job) -> str:
    """The instant of a one-off, else the schedule."""
    if job.definition.run_at is not None:
        return f"once, {format_instant(job.definition.run_at)}"
    return schedule_words(job)
