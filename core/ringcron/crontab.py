"""Crontab files as jobs: what cron would run, as bodies of POST /jobs.

Invariant: a line becomes exactly one job or is refused with its number and why; nothing is left out in silence, and a
line that is read again gives the same key. Read as cronie and Debian's cron read: an assignment holds for the lines
below it, `%` parts the command from its standard input, and in a system crontab the sixth word is a user. Workers do
not switch users, so the user becomes a tag, and a note says so. A command that fails is not tried again, as under cron:
many end with 1 on purpose (`test -x … && …`), and few are safe to repeat at once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from ringcron.cron import Zone, known_zone, nearest_zone
from ringcron.errors import ScheduleError
from ringcron.schedule import parse_schedule, schedule_faults

NAME_CHARACTERS: Final = 256
TAG_CHARACTERS: Final = 128
_ASSIGNMENT: Final = re.compile(r"""(?:"(?P<double>[^"=]+)"|'(?P<single>[^'=]+)'|(?P<bare>[^\s="'][^\s=]*))\s*=\s*""")
_ENTRY: Final = re.compile(r"(?P<cron>@\S+|\S+(?:[ \t]+\S+){4})[ \t]+(?P<rest>\S.*)", re.DOTALL)
_USER: Final = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*\$?)(?:[ \t]+(?P<command>\S.*))?", re.DOTALL)
_COMMAND: Final = re.compile(r"(?:[^\\%]|\\.)*\\?", re.DOTALL)  # up to the first % that no backslash covers
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)


class RefusedLine(NamedTuple):
    """A line that is no job, counted from 1."""

    number: int
    text: str
    why: str


class _Refused(Exception):
    """Why a line is refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CrontabFile:
    """What one file holds."""

    jobs: list[dict[str, Any]]
    """Bodies of POST /jobs, in the order of the file."""
    lines: list[int]
    """The number of the line of each job."""
    refused: list[RefusedLine]
    notes: list[str]
    """What is done in another way than cron does it."""


def parse_crontab(text: str, *, file_name: str, system: bool, handler: str, timezone: str) -> CrontabFile:
    """Read a crontab.

    `file_name` goes into each key, so it should be the same wherever the file lies. `system`: the lines have a user, as
    in /etc/crontab and /etc/cron.d. `timezone` holds until a CRON_TZ line; ScheduleError when it is not known.
    """
    parse_schedule({"cron": "@daily", "timezone": timezone})
    reading = _Reading(file_name=file_name, system=system, handler=handler, zone=known_zone(timezone))
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.removesuffix("\r").lstrip(" \t")
        if stripped and not stripped.startswith("#"):
            reading.line(number, stripped)
    return CrontabFile(jobs=reading.jobs, lines=reading.lines, refused=reading.refused, notes=list(reading.notes))


def split_stdin(command: str) -> tuple[str, str | None]:
    r"""(the command, its standard input): parted at the first `%` without a backslash; a further one is a newline.

    `\%` is a percent sign. None when there is no `%`; an input ends in a newline, as cron makes it.
    """
    head = _COMMAND.match(command)
    assert head is not None
    shell = _ESCAPE.sub(lambda escape: "%" if escape[0] == "\\%" else escape[0], head[0])
    if head.end() == len(command):
        return shell, None
    stdin = re.sub(r"\\%|%", lambda sign: "\n" if sign[0] == "%" else "%", command[head.end() + 1 :])
    return shell, stdin if stdin.endswith("\n") or not stdin else stdin + "\n"


class _Reading:
    """One file being read."""

    def __init__(self, *, file_name: str, system: bool, handler: str, zone: Zone) -> None:
        self._file_name = file_name
        self._system = system
        self._handler = handler
        self._zone: Zone | None = zone  # None below a CRON_TZ that is not known
        self._env: dict[str, str] = {}
        self._equal: Counter[tuple[str, ...]] = Counter()
        self.jobs: list[dict[str, Any]] = []
        self.lines: list[int] = []
        self.refused: list[RefusedLine] = []
        self.notes: dict[str, None] = {}

    def line(self, number: int, line: str) -> None:
        try:
            if "\0" in line or re.search("[\ud800-\udfff]", line):
                raise _Refused("is not UTF-8 text")
            assignment = _ASSIGNMENT.match(line)
            if assignment is not None:
                self._assign(assignment, line[assignment.end() :])
            else:
                self.jobs.append(self._job(line))
                self.lines.append(number)
        except _Refused as why:
            self.refused.append(RefusedLine(number, line, str(why)))

    def _assign(self, assignment: re.Match[str], value: str) -> None:
        name = assignment["double"] or assignment["single"] or assignment["bare"]
        value = _unquoted(value)
        if name == "CRON_TZ":
            self._zone = None
            try:
                self._zone = known_zone(value)
            except KeyError:
                near = nearest_zone(value)
                advice = f": did you mean {near}?" if near else ""
                raise _Refused(f"{value!r} is no time zone of the tz database{advice}") from None
            return
        if name == "TZ":
            self._note("TZ is given to the commands; it does not move the schedule: that is what CRON_TZ does")
        self._env[name] = value

    def _job(self, line: str) -> dict[str, Any]:
        entry = _ENTRY.fullmatch(line.removeprefix("-"))  # cronie: a leading - only silences the log
        if entry is None:
            raise _Refused("must have five fields, or a name such as @daily, and then a command")
        rest = entry["rest"]
        user, command = self._user(rest) if self._system else (None, rest)
        if not self._system and re.match(r"root[ \t]", command):
            self._note("commands begin with the word root: a crontab with users is read with --system")
        document = self._document(entry["cron"])
        shell, stdin = split_stdin(command)
        payload: dict[str, Any] = {"shell": shell}
        if self._env:
            payload["env"] = dict(self._env)
        if stdin is not None:
            payload["stdin"] = stdin
        tags = [f"crontab:{self._file_name}"]
        if user is not None:
            tags.append(f"user:{user}")
            self._note("workers do not switch users: the user of a line is kept as the tag user:NAME")
        return {
            "handler": self._handler,
            "schedule": document,
            "payload": payload,
            "retry": {"maxAttempts": 1},
            "key": self._key(document, user, command),
            "onConflict": "keep",
            "name": f"{self._file_name}: {command}"[:NAME_CHARACTERS],
            "tags": [tag[:TAG_CHARACTERS] for tag in tags],
        }

    def _user(self, rest: str) -> tuple[str, str]:
        found = _USER.fullmatch(rest)
        if found is None:
            first = rest.split(maxsplit=1)[0]
            raise _Refused(f"a system crontab names a user before the command, and {first!r} is none")
        if not found["command"]:
            raise _Refused(
                f"has no command after the user {found['user']!r}; a user's own crontab is read without --system"
            )
        return found["user"], found["command"]

    def _document(self, cron: str) -> Mapping[str, Any]:
        if self._zone is None:
            raise _Refused("stands below a CRON_TZ that is not known")
        document = {"cron": cron, "timezone": self._zone.name}
        try:
            return parse_schedule(document).document
        except ScheduleError:
            raise _Refused("; ".join(str(fault) for fault in schedule_faults(document))) from None

    def _key(self, document: Mapping[str, Any], user: str | None, command: str) -> str:
        same = (document["cron"], document["timezone"], user or "", command)
        self._equal[same] += 1
        text = json.dumps([self._file_name, *same, self._equal[same]])
        return f"crontab:{self._file_name}:{blake2b(text.encode(), digest_size=16).hexdigest()}"

    def _note(self, note: str) -> None:
        self.notes[note] = None


def _unquoted(value: str) -> str:
    """The value of an assignment: within matching quotes as it stands, else without the blanks around it."""
    quote = value[:1]
    if quote not in ('"', "'"):
        return value.strip(" \t")
    inner, closing, after = value[1:].partition(quote)
    if not closing:
        raise _Refused(f"the quote {quote} is not closed")
    if after.strip(" \t"):
        raise _Refused(f"has text after the closing quote {quote}")
    return inner
