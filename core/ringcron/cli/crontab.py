"""`ringcron import-crontab`: the jobs of crontab files, put in through the API.

Safe to repeat: each job has a key and `onConflict: keep`, so that a second run keeps what is there. A line that is
refused, here or by the API, is told with its number and why, and the exit code is 1. Jobs whose handler no live worker
has would wait in silence: that is told too.
"""

from __future__ import annotations

import json
import os
from http.client import HTTPException
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

import typer

from ringcron import service
from ringcron.cli.api_address import NOBODY_ANSWERS, ApiOption, KeyOption, key_of, url_of
from ringcron.cli.faults import told
from ringcron.crontab import CrontabFile, parse_crontab
from ringcron.errors import ConfigError, ScheduleError, StoreUnavailable

TIMEOUT_SECONDS = 30.0
SHOWN_CHARACTERS = 40
"""Of a refused line; its number tells where the rest stands."""


class _Row(NamedTuple):
    """One line of a file, as the table shows it."""

    outcome: str
    place: str
    schedule: str
    detail: str


def import_crontab(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Crontab files.", exists=True, dir_okay=False)],
    system: Annotated[
        bool, typer.Option("--system", help="Lines have a user, as in /etc/crontab and /etc/cron.d.")
    ] = False,
    handler: Annotated[str, typer.Option(metavar="NAME", help="The handler of the jobs.")] = "command",
    timezone: Annotated[str, typer.Option(metavar="TZ", help="The time zone where no CRON_TZ line names one.")] = "UTC",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be created, and create nothing.")] = False,
    api: ApiOption = None,
    api_key: KeyOption = None,
) -> None:
    """Turn crontab lines into jobs; a second time changes nothing."""
    with told():
        opened = None if dry_run else _Api(api or url_of(os.environ), api_key or key_of(os.environ))
        rows: list[_Row] = []
        notes: dict[str, list[str]] = {}
        for path in files:
            crontab = _read(path, system=system, handler=handler, timezone=timezone)
            rows += _rows(path.name, crontab, opened)
            for note in crontab.notes:
                notes.setdefault(note, []).append(path.name)
        _tell(rows, notes, timezone)
        if opened is not None and any(row.outcome in ("created", "kept") for row in rows):
            _warn(opened, handler)
    if any(row.outcome == "refused" for row in rows):
        raise typer.Exit(service.FAULT)


def _read(path: Path, *, system: bool, handler: str, timezone: str) -> CrontabFile:
    try:
        text = path.read_text("utf-8", errors="surrogateescape")
        return parse_crontab(text, file_name=path.name, system=system, handler=handler, timezone=timezone)
    except ScheduleError as fault:
        raise ConfigError([f"--timezone {fault}"]) from None
    except OSError as fault:
        raise ConfigError([f"{path} cannot be read: {fault.strerror}"]) from None


def _rows(file_name: str, crontab: CrontabFile, api: _Api | None) -> list[_Row]:
    rows = [
        (line.number, _Row("refused", "", shorten(line.text, SHOWN_CHARACTERS, placeholder=" …"), line.why))
        for line in crontab.refused
    ]
    for number, job in zip(crontab.lines, crontab.jobs, strict=True):
        outcome, detail = ("would create", job["payload"]["shell"]) if api is None else api.create(job)
        rows.append((number, _Row(outcome, "", job["schedule"]["cron"], detail)))
    return [row._replace(place=f"{file_name}:{number}") for number, row in sorted(rows, key=lambda row: row[0])]


def _tell(rows: list[_Row], notes: dict[str, list[str]], timezone: str) -> None:
    place = max((len(row.place) for row in rows), default=0)
    schedule = max((len(row.schedule) for row in rows), default=0)
    for row in rows:
        typer.echo(f"{row.outcome:<12}  {row.place:<{place}}  {row.schedule:<{schedule}}  {row.detail}")
    for note, names in notes.items():
        typer.echo(f"note: {note} ({', '.join(names)})")
    outcomes = [row.outcome for row in rows]
    counted = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in dict.fromkeys(outcomes)) or "no lines"
    typer.echo(f"{counted} (times in {timezone} where no CRON_TZ says otherwise)")


def _warn(api: _Api, handler: str) -> None:
    if api.has_worker_with(handler):
        return
    advice = "; workers have it when started with --allow-commands" if handler == "command" else ""
    typer.echo(f"warning: no live worker has the handler {handler!r}: the jobs wait until one does{advice}", err=True)


class _Api:
    """The API, as far as an import goes."""

    def __init__(self, url: str, api_key: str | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError([f"--api must be an http or https address, not {url!r}"])
        self._url = url
        self._has_answered = False
        self._jobs = f"{url.rstrip('/')}/jobs"
        self._workers = f"{url.rstrip('/')}/workers"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if api_key is not None:
            if not api_key.isascii() or not api_key.isprintable():
                raise ConfigError(["--api-key must be a key as `ringcron key add` prints it"])
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._opener: OpenerDirector = build_opener(ProxyHandler({}))  # a scheduler's own address is never proxied

    def create(self, job: dict[str, Any]) -> tuple[str, str]:
        """(created, kept or refused; the job's id or why). StoreUnavailable when the API does not answer."""
        request = Request(self._jobs, data=json.dumps(job).encode(), headers=self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                job_id = json.load(answer)["jobId"]
                self._has_answered = True
                return ("created" if answer.status == 201 else "kept"), job_id
        except HTTPError as answer:
            if 400 <= answer.code < 500:
                return "refused", _why(answer)
            raise StoreUnavailable(f"the API answered {answer.code} ({_why(answer)}); {_AGAIN}") from None
        except (OSError, HTTPException) as fault:  # URLError and TimeoutError are OSErrors
            raise self._unavailable(f"cannot be reached: {_reason(fault)}") from None
        except (ValueError, KeyError, TypeError):
            raise self._unavailable("does not answer as the API does") from None

    def _unavailable(self, why: str) -> StoreUnavailable:
        advice = f"; {_AGAIN}" if self._has_answered else f"\n{NOBODY_ANSWERS}"
        return StoreUnavailable(f"{self._url} {why}{advice}")

    def has_worker_with(self, handler: str) -> bool:
        """Whether a live worker claims jobs of this handler. True also where the API does not say: that is no reason to
        warn, and the jobs are in."""
        cursor = ""
        try:
            while True:
                address = f"{self._workers}?limit=500{cursor}"
                with self._opener.open(Request(address, headers=self._headers), timeout=TIMEOUT_SECONDS) as answer:
                    page = json.load(answer)
                if any(handler in worker["handlers"] and not worker["draining"] for worker in page["items"]):
                    return True
                if page["nextCursor"] is None:
                    return False
                cursor = f"&cursor={quote(page['nextCursor'])}"
        except (OSError, HTTPException, ValueError, KeyError):
            return True


_AGAIN = "repeat the command when it is back: what was created is kept"


def _reason(fault: OSError | HTTPException) -> str:
    """In plain words, as "Connection refused"."""
    cause = fault.reason if isinstance(fault, URLError) else fault
    return (isinstance(cause, OSError) and cause.strerror) or str(cause) or type(cause).__name__


def _why(answer: HTTPError) -> str:
    """What a problem document says; the status where there is none."""
    try:
        problem = json.load(answer)
        faults = [f"{fault['pointer']} {fault['detail']}" for fault in problem.get("errors", [])]
        return "; ".join(faults) or str(problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP status {answer.code}"
