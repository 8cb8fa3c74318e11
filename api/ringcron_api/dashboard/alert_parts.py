"""The alerts of jobs that are breached: their table, and what a job's page says of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ringcron.alerts import AlertKind
from ringcron.models import Job
from ringcron.store.alerting import SHOWN
from ringcron_api.dashboard.alarms import Alarms, limit_words
from ringcron_api.dashboard.job_words import state_pill
from ringcron_api.dashboard.layout import row, table
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.phrases import counted, moment, span


def alarms_table(alarms: Alarms) -> Markup:
    """Every breached alert, with a link to its job."""
    rows = [
        row(
            tag("th", tag("a", alarm.job, href=f"/dashboard/jobs/{alarm.job_id}"), scope="row"),
            limit_words(alarm.kind, alarm.limit_seconds),
            tag("td", moment(alarm.since)),
            tag("td", span(alarm.limit_seconds), class_="num"),
            tag("td", state_pill(alarm.state.value)),
            alarm.handler,
        )
        for alarm in alarms.found
    ]
    head: tuple[Child, ...] = (
        "job",
        "what",
        "since (UTC)",
        tag("th", "limit", scope="col", class_="num"),
        "state",
        "handler",
    )
    rest = tag("p", f"Of the first {counted(SHOWN, 'job')}; there may be more.", class_="note")
    return join(table(head, rows, empty="No job breaches an alert."), rest if alarms.capped else None)


def job_alarm(job: Job, breaches: Mapping[AlertKind, datetime]) -> Markup | None:
    """What this job breaches, and since when; None where nothing."""
    limits = {
        AlertKind.LATE: job.definition.alert_after_late_seconds,
        AlertKind.NO_SUCCESS: job.definition.alert_if_no_success_seconds,
    }
    told = [
        tag("li", f"It {limit_words(kind, limit)}: its alert is breached since ", moment(since), " UTC.")
        for kind, since in breaches.items()
        if (limit := limits[kind]) is not None
    ]
    return tag("ul", told, class_="breached bad", id="breached") if told else None
