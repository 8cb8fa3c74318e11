"""The commands of `ringcron job`: the jobs of an API, by its client."""

from __future__ import annotations

import typer

from ringcron.cli.api_call import api_command
from ringcron.cli.job_changing import cancel_job, pause_job, redrive_jobs, resume_job, trigger_job
from ringcron.cli.job_definition import add_job, preview_schedule
from ringcron.cli.job_reading import explain_job, list_jobs, list_runs, list_skips, show_job

job = typer.Typer(rich_markup_mode=None)

job.command("add")(api_command(add_job))
job.command("list")(api_command(list_jobs))
job.command("show")(api_command(show_job))
job.command("runs")(api_command(list_runs))
job.command("skips")(api_command(list_skips))
job.command("explain")(api_command(explain_job))
job.command("cancel")(api_command(cancel_job))
job.command("pause")(api_command(pause_job))
job.command("resume")(api_command(resume_job))
job.command("trigger")(api_command(trigger_job))
job.command("redrive")(api_command(redrive_jobs))
job.command("preview")(api_command(preview_schedule))
