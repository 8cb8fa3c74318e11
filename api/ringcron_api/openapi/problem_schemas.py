"""The table of problems as schemas and responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ringcron.api_keys import Scope
from ringcron_api.openapi.texts import PROBLEM_MEANINGS
from ringcron_api.problems import CONTENT_TYPE, PROBLEMS

_TEXT: Final = {"type": "string"}
_ERRORS: Final = {"errors": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Fault"}}}
_MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "malformed-json": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
    "validation-failed": _ERRORS,
    "schedule-never-fires": _ERRORS,
    "job-claimed": {
        "runId": _TEXT,
        "leaseOwner": _TEXT,
        "leaseUntil": {"type": "string", "format": "date-time"},
        "cancelUrl": _TEXT,
    },
    "forbidden": {"neededScope": {"enum": [scope.value for scope in Scope]}},
    "wrong-state": {"state": {"$ref": "#/components/schemas/JobState"}},
    "key-exists": {"jobId": {"type": "string", "format": "uuid"}},
}

_RETRY_AFTER: Final = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
_CHALLENGE: Final = {"WWW-Authenticate": {"description": "RFC 6750.", "schema": {"type": "string"}}}
_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "unauthorized": _CHALLENGE,
    "forbidden": _CHALLENGE,
    "too-many-requests": _RETRY_AFTER,
    "store-unavailable": _RETRY_AFTER,
}


def problem_schemas() -> dict[str, Any]:
    """One schema for each code: the common members and its own."""
    return {
        _name(code): {
            "description": PROBLEM_MEANINGS[code],
            "allOf": [{"$ref": "#/components/schemas/Problem"}],
            "properties": {
                "code": {"const": code},
                "status": {"const": kind.status},
                "title": {"const": kind.title},
                **_MEMBERS.get(code, {}),
            },
            "required": ["code", "status", "title", *_MEMBERS.get(code, {})],
        }
        for code, kind in PROBLEMS.items()
    }


def problem_responses(codes: Iterable[str]) -> dict[str, Any]:
    """Responses by status for the problems that an operation may answer with."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {str(status): _response(sorted(set(same))) for status, same in sorted(by_status.items())}


def _response(codes: list[str]) -> dict[str, Any]:
    schemas = [{"$ref": f"#/components/schemas/{_name(code)}"} for code in codes]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    response: dict[str, Any] = {
        "description": " ".join(f"`{code}`: {PROBLEM_MEANINGS[code]}" for code in codes),
        "content": {CONTENT_TYPE: {"schema": schema}},
    }
    headers = {name: header for code in codes for name, header in _HEADERS.get(code, {}).items()}
    if headers:
        response["headers"] = headers
    return response


def _name(code: str) -> str:
    """job-claimed → JobClaimedProblem."""
    return "".join(word.capitalize() for word in code.split("-")) + "Problem"
