"""`ringcron job …` in this process, against one API."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from ringcron.cli import app


def run(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
    """`ringcron job` with these arguments."""
    return CliRunner().invoke(app, ["job", *arguments], input=stdin, env=environment)


class JobCommand:
    """`ringcron job`, told by the environment where the API is."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *arguments: str, stdin: str | None = None, **environment: str) -> Result:
        return run(*arguments, stdin=stdin, **{"RINGCRON_API_URL": self.url, **environment})

    def json(self, *arguments: str) -> Any:
        """What a command that succeeds says with --json."""
        done = self(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def add(self, *arguments: str) -> str:
        """The id of a job that is created."""
        job_id: str = self.json("add", *arguments)["jobId"]
        return job_id
