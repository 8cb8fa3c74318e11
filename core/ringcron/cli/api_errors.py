"""What the API refused, told to a person: what is wrong, by the name of the flag, and what to do next."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ringcron.cli.api_address import NOBODY_ANSWERS
from ringcron.cli.tables import shown
from ringcron.client import (
    ApiError,
    FieldFault,
    Forbidden,
    JobClaimed,
    KeyExists,
    Misdirected,
    NotFound,
    Unauthorized,
    Unreachable,
)

_FLAGS: Final = {
    "/runAt": "--at",
    "/onConflict": "--on-conflict",
    "/schedule": "the schedule",
    "": "the job",
}
"""Where a flag is not called as the last step of the pointer."""
_STEP: Final = re.compile(r"/([A-Za-z]+)(?:/\d+)?$")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_text(error: ApiError | Unreachable) -> str:
    """The error in sentences."""
    lines = [_what(error)]
    faults = error.errors if isinstance(error, ApiError) else ()
    lines += [f"  {flag_of(fault)} {fault.detail}" for fault in faults]
    if way := _way_forward(error):
        lines.append(way)
    return "\n".join(shown(line) for text in lines for line in text.splitlines())


def error_json(error: ApiError | Unreachable) -> str:
    """The error as a problem document."""
    document: Any = error.problem if isinstance(error, ApiError) else {"code": "unreachable", "detail": str(error)}
    return json.dumps(document, ensure_ascii=False, indent=2)


def flag_of(fault: FieldFault) -> str:
    """The flag that a fault is about: `--max-attempts` of /retry/maxAttempts. In a payload the pointer says where."""
    if fault.pointer in _FLAGS:
        return _FLAGS[fault.pointer]
    step = _STEP.search(fault.pointer)
    if fault.pointer.startswith("/payload"):
        return f"--payload {fault.pointer.removeprefix('/payload')}".rstrip()
    if step is None:
        return fault.pointer
    return "--" + _CAPITAL.sub("-", step[1]).lower().replace("tags", "tag")


def _what(error: ApiError | Unreachable) -> str:
    if not isinstance(error, ApiError):
        return str(error)
    if error.errors:
        return "the API refuses this:"
    return error.detail if error.request_id is None or error.status < 500 else f"{error.detail} ({error.request_id})"


def _way_forward(error: ApiError | Unreachable) -> str | None:
    match error:
        case Misdirected():
            return "--api or RINGCRON_API_URL names the API"
        case Unreachable():
            return NOBODY_ANSWERS
        case JobClaimed():
            job_id = error.run_id.rpartition(".")[0]
            return (
                f"to let this run be the last: ringcron job cancel {job_id} --after-current\n"
                f"to stop this run: ringcron job cancel {job_id} --run"
            )
        case KeyExists():
            return f"see it: ringcron job show {error.job_id}; or give --on-conflict keep or replace"
        case NotFound():
            return "ringcron job list shows what there is"
        case Unauthorized():
            return "give an API key: RINGCRON_API_KEY, RINGCRON_API_KEY_FILE or --api-key"
        case Forbidden():
            return "use an API key of a wider scope"
    return None
