"""What a person may do to a job, by its state: the forms of its page. Pure."""

from __future__ import annotations

from datetime import datetime

from ringcron.models import Job, JobState
from ringcron_api.dashboard.forms import act_form
from ringcron_api.dashboard.job_parts import run_in_progress
from ringcron_api.dashboard.markup import Markup, tag
from ringcron_api.dashboard.session import Session


def acts(session: Session | None, job: Job, now: datetime) -> Markup:
    """A form for each act that the state allows."""
    base = f"/dashboard/jobs/{job.id}"
    claimed = job.state is JobState.CLAIMED and (job.lease_until is None or job.lease_until >= now)
    forms: list[Markup] = []
    if job.state is JobState.DEAD:
        explained = "The same occurrence again, now, with all its attempts."
        forms.append(act_form(session, f"{base}/redrive", "Redrive", explained=explained))
    if job.state in (JobState.DUE, JobState.CLAIMED, JobState.PAUSED):
        explained = "Once after the run in progress." if claimed else "Now, once; its ticks stay."
        forms.append(act_form(session, f"{base}/trigger", "Trigger", explained=explained))
    if claimed:
        explained = "Its worker is told within a second; a run that is stopped is not tried again."
        stop = f"/dashboard/runs/{run_in_progress(job)}/cancel"
        forms.append(act_form(session, stop, "Cancel the run", explained=explained, danger=True))
    waits = (job.after_current or {}).get("pause") is not None
    if job.state is JobState.PAUSED or waits:
        forms.append(act_form(session, f"{base}/resume", "Resume", explained="It goes on with its next tick."))
    elif job.state in (JobState.DUE, JobState.CLAIMED):
        explained = "Nothing starts until it is resumed. A run in progress is not stopped."
        forms.append(act_form(session, f"{base}/pause", "Pause", explained=explained))
    if job.state in (JobState.DUE, JobState.CLAIMED, JobState.PAUSED, JobState.DEAD):
        where, label = ("cancel-later", "Cancel after the run") if claimed else ("cancel", "Cancel the job")
        explained = "Nothing follows the run in progress." if claimed else "Nothing will start any more."
        forms.append(act_form(session, f"{base}/{where}", label, explained=explained, danger=True))
    if not forms:
        return tag("p", "It has ended: there is nothing left to do.", class_="none")
    return tag("div", forms, class_="each")
