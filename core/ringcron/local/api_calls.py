"""The few calls to the API of this machine that `ringcron up` makes."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final

TIMEOUT_SECONDS: Final = 5.0


def call(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """The status and the JSON of the answer. OSError where nobody answers; ValueError where it is no JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(
            method,
            path,
            body=None if body is None else json.dumps(body),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        text = answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"the API broke off its answer: {type(error).__name__}") from error
    finally:
        connection.close()
    return answer.status, json.loads(text) if text else None


def is_ready(port: int) -> bool:
    """Whether the API answers and has its database."""
    try:
        return call(port, "GET", "/readyz")[0] == 200
    except (OSError, ValueError):
        return False


def serving(port: int, *, workers: int, assigned: bool) -> bool:
    """Whether so many workers have reported themselves and, if `assigned`, every slot has an owner."""
    try:
        status, answer = call(port, "GET", "/workers?limit=500")
        if status != 200 or len(answer["items"]) < workers:
            return False
        if not assigned:
            return True
        status, shards = call(port, "GET", "/shards")
        return status == 200 and not shards["unowned"]
    except (OSError, ValueError):
        return False
