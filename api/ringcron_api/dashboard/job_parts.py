"""The parts of a job's page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from ringcron.errors import ScheduleError
from ringcron.instants import format_instant
from ringcron.models import Job, Run
from ringcron.schedule import ClockMark, parse_schedule
from ringcron.store.api import SkipRecord
from ringcron.store.audit import AuditEntry
from ringcron_api.answers import duration_text, run_id
from ringcron_api.creation import SHOWN_RUNS, next_runs
from ringcron_api.dashboard.job_words import OUTCOME_MARKS, attempt_words, json_text, outcome_sign, when_words
from ringcron_api.dashboard.layout import row, table
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.phrases import counted, moment, span, stamp

_CLOCK_MARKS: Final = {
    ClockMark.MOVED: "its local time is skipped by the clock: the first instant after",
    ClockMark.FIRST_PASS: "its local time comes twice: the first pass",
    ClockMark.SECOND_PASS: "its local time comes twice: the second pass",
}


def timeline(runs: Sequence[Run]) -> Markup:
    """A column per occurrence, the newest on the right; in it an attempt each, the first at the bottom."""
    if not runs:
        return tag("p", "No run yet.", class_="none")
    occurrences: dict[tuple[datetime, str], list[Run]] = {}
    for run in runs:
        occurrences.setdefault((run.scheduled_for, run.cause.value), []).append(run)
    columns = []
    for attempts in occurrences.values():
        cells = [tag("li", _attempt(run)) for run in sorted(attempts, key=lambda run: run.lease_generation)]
        columns.append(tag("li", tag("ol", cells)))
    signs = [tag("li", outcome_sign(outcome)) for outcome in OUTCOME_MARKS]
    return join(
        tag("ol", columns, class_="occurrences", tabindex="0", aria_label="Occurrences, newest first"),
        tag("ul", signs, class_="legend"),
    )


def _attempt(run: Run) -> Markup:
    sign, name = OUTCOME_MARKS[run.outcome]
    word = "running" if run.outcome is None else run.outcome.value.replace("_", " ")
    took = "" if run.finished_at is None else f", {span((run.finished_at - run.started_at).total_seconds())}"
    late = span(max(0.0, (run.started_at - run.scheduled_for).total_seconds()))
    label = (
        f"{format_instant(run.scheduled_for)}, attempt {run.attempt}: {word}{took}; started {late} after its instant"
    )
    return tag("a", sign, href=f"#run-{run.lease_generation}", class_=name, title=label, aria_label=label)


def upcoming(job: Job, now: datetime) -> Markup:
    """The next runs in the job's own zone and in UTC."""
    instants = next_runs(job, now)
    if not instants:
        return tag("p", "No run is planned.", class_="none")
    zone, marks = _zone_and_marks(job, now)
    named = zone if zone is not None and zone.key not in ("UTC", "Etc/UTC") else None
    rows = []
    for instant in instants:
        cells: list[Child] = [
            tag("td", moment(instant)),
            tag("td", stamp(instant, now)),
            tag("td", _CLOCK_MARKS[marks[instant]] if instant in marks else None, class_="none"),
        ]
        if named is not None:
            local = instant.astimezone(named).strftime("%a %Y-%m-%d %H:%M:%S %Z")
            cells.insert(0, tag("td", local, class_="when"))
        rows.append(row(*cells))
    return table((*((named.key,) if named is not None else ()), "UTC", "when", "clock change"), rows)


def _zone_and_marks(job: Job, now: datetime) -> tuple[ZoneInfo | None, dict[datetime, ClockMark]]:
    if job.definition.schedule is None:
        return None, {}
    try:
        schedule = parse_schedule(job.definition.schedule)
        zone = None if schedule.timezone is None else ZoneInfo(schedule.timezone)
        return zone, dict(schedule.marks(now, SHOWN_RUNS))
    except (ScheduleError, ZoneInfoNotFoundError):
        return None, {}


def facts(job: Job, now: datetime) -> Markup:
    """What is stored of the job."""
    definition, retry = job.definition, job.definition.retry
    told: list[tuple[str, Child]] = [
        ("id", tag("code", str(job.id))),
        ("key", definition.key),
        ("schedule", tag("span", when_words(job), class_="mono")),
        ("handler", tag("a", definition.handler, href=f"/dashboard/jobs?handler={definition.handler}")),
        ("tags", ", ".join(definition.tags) or None),
        ("next run", stamp(job.next_run_at, now) if job.next_run_at is not None else None),
        ("scheduled for", moment(job.scheduled_for)),
        ("cause", job.cause.value),
        ("attempt", attempt_words(job, "of") if job.attempt else None),
        ("slot", f"{job.slot}"),
        ("lease", _lease(job, now)),
        ("generation", job.lease_generation or None),
        ("retry", f"back-off {duration_text(retry.min_backoff_seconds)} to {duration_text(retry.max_backoff_seconds)}"),
        ("timeout", _duration(definition.timeout_seconds)),
        ("alert after late", _duration(definition.alert_after_late_seconds)),
        ("alert if no success for", _duration(definition.alert_if_no_success_seconds)),
        ("overlap", definition.overlap.value if definition.schedule is not None else None),
        ("catchup", definition.catchup.value if definition.schedule is not None else None),
        ("jitter", duration_text(definition.jitter_seconds) if definition.jitter_seconds else None),
        ("created", stamp(job.created_at, now)),
        ("changed", stamp(job.updated_at, now)),
    ]
    return tag(
        "dl", [join(tag("dt", name), tag("dd", value)) for name, value in told if value is not None], class_="facts"
    )


def _lease(job: Job, now: datetime) -> str | None:
    if job.lease_owner is None or job.lease_until is None:
        return None
    left = (job.lease_until - now).total_seconds()
    return f"{job.lease_owner}, {f'{span(left)} left' if left > 0 else f'lapsed {span(-left)} ago'}"


def runs_table(runs: Sequence[Run], now: datetime, *, more: bool) -> Markup:
    """The runs, newest first, each with its error and its result."""
    rows = [
        row(
            tag("th", run.lease_generation, scope="row", class_="num"),
            tag("td", outcome_sign(run.outcome)),
            tag("td", moment(run.scheduled_for)),
            tag("td", run.attempt, class_="num"),
            run.cause.value,
            tag("td", stamp(run.started_at, now)),
            tag(
                "td",
                span(((run.finished_at or now) - run.started_at).total_seconds()),
                class_="num",
            ),
            run.worker_id,
            tag("td", _ended(run)),
            id=f"run-{run.lease_generation}",
        )
        for run in runs
    ]
    head: tuple[Child, ...] = (
        tag("th", "run", scope="col", class_="num"),
        "outcome",
        "scheduled for",
        tag("th", "attempt", scope="col", class_="num"),
        "cause",
        "started",
        tag("th", "took", scope="col", class_="num"),
        "worker",
        "error or result",
    )
    rest = (
        tag("p", f"The newest {len(runs)}; GET /jobs/{runs[0].job_id}/runs has all.", class_="note") if more else None
    )
    return join(table(head, rows, empty="No run yet."), rest)


def _ended(run: Run) -> Markup | None:
    if run.error is not None:
        first, _, rest = run.error.strip().partition("\n")
        if not rest and len(first) <= 120:
            return tag("span", first, class_="error")
        return tag("details", tag("summary", first[:200], class_="error"), tag("pre", run.error, tabindex="0"))
    if run.result is None:
        return None
    text = json_text(run.result)
    if len(text) <= 60 and "\n" not in text:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", " ".join(text.split())[:120])), tag("pre", text, tabindex="0"))


def skips_table(skips: Sequence[SkipRecord]) -> Markup:
    """Ticks deliberately not run."""
    rows = [
        row(
            one.skip.reason.value,
            tag("td", counted(one.skip.count, "tick"), class_="num"),
            tag("td", moment(one.skip.first)),
            tag("td", moment(one.skip.last) if one.skip.count > 1 else None),
        )
        for one in skips
    ]
    return table(
        ("reason", tag("th", "ticks", scope="col", class_="num"), "from", "to"), rows, empty="No tick was skipped."
    )


def audit(entries: Sequence[AuditEntry]) -> Markup:
    """Who did what, and why."""
    rows = []
    for entry in entries:
        detail = dict(entry.act.detail or {})
        why = detail.pop("reason", None)
        detail.pop("via", None)
        rest = orjson.dumps(detail).decode() if detail else None
        rows.append(
            row(
                tag("td", moment(entry.at)),
                entry.act.action.value,
                entry.act.key_name or "anonymous",
                tag("td", why, " ", tag("small", rest) if rest else None),
            )
        )
    return table(("at", "act", "who", "why"), rows, empty="Nobody has acted on it.")


def payload(job: Job) -> Markup:
    return tag("pre", json_text(job.definition.payload), tabindex="0")


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def run_in_progress(job: Job) -> str:
    """The id of the run that a claimed job has."""
    return run_id(job.id, job.lease_generation)
