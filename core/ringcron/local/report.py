"""What `ringcron up` tells: up.json for programs, a block of text for people."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringcron.local.data_folder import DataFolder
from ringcron.local.supervisor import Child
from ringcron.redaction import redact


@dataclass(frozen=True, kw_only=True, slots=True)
class Addresses:
    """Where everything is. `zookeeper` may be "none"."""

    port: int
    database_url: str
    zookeeper: str

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def up_document(addresses: Addresses, children: Sequence[Child]) -> dict[str, Any]:
    """The contents of up.json."""
    return {
        "apiUrl": addresses.api_url,
        "databaseUrl": addresses.database_url,
        "zookeeper": addresses.zookeeper,
        "processes": [{"role": child.role, "name": child.name, "pid": child.pid} for child in children],
    }


def announcement(
    addresses: Addresses, folder: DataFolder, children: Sequence[Child], concurrency: int, *, found: bool
) -> str:
    """What is shown when everything serves. `found`: the commands find this `ringcron up` by themselves from here."""
    count = Counter(child.role for child in children)
    api = addresses.api_url
    soon = "date -u -v+3S +%FT%TZ" if sys.platform == "darwin" else "date -u -d '+3 seconds' +%FT%TZ"
    running = (
        f"{_number(count['coordinator'], 'coordinator')}, {_number(count['worker'], 'worker')} "
        f"of {_number(concurrency, 'job')} at once"
    )
    pointed = "" if found else f"  # where it is, for ringcron job\n  export RINGCRON_API_URL={api}\n"
    return f"""
ringcron is up.

  API         {api}    (reference: {api}/docs)
  dashboard   {api}/dashboard
  PostgreSQL  {redact(addresses.database_url)}
  ZooKeeper   {addresses.zookeeper}
  running     {running}
  data, logs  {folder.path}    (addresses and password: {folder.up_file})

Try, in another terminal, in this folder:

{pointed}  # what there is
  {_ringcron()} job list
  # a job in three seconds
  curl -s {api}/jobs -H 'Content-Type: application/json' \\
       -d '{{"runAt": "'"$({soon})"'", "payload": {{"hello": "world"}}}}'
  # one every minute, and its next ten runs
  curl -s {api}/jobs -H 'Content-Type: application/json' \\
       -d '{{"schedule": {{"cron": "* * * * *", "timezone": "UTC"}}, "key": "mine"}}'
  # the same as JSON; what ran; who owns which slots
  curl -s '{api}/jobs?limit=5'
  curl -s {api}/jobs/JOB_ID/runs
  curl -s {api}/shards
  # watch the jobs run
  tail -f {folder.logs}/worker-*.log

Ctrl-C stops everything. The data stay; `--fresh` begins anew.
"""


def _ringcron() -> str:
    """How the command is called from here: by its name where PATH leads to the one of this installation."""
    script = Path(sys.executable).with_name("ringcron")
    if shutil.which("ringcron") == str(script):
        return "ringcron"
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m ringcron"
    return shlex.quote(min(str(script), os.path.relpath(script), key=len))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
