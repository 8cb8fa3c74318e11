"""The few calls to the API of this machine that `ringcron up` makes."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final

from ringcron.errors import RingcronError

TIMEOUT_SECONDS: Final = 10.0


class ApiUnavailable(RingcronError):
    """The API cannot be reached."""

    retriable = True


class KeyNeeded(RingcronError):
    """The API asks for a key, and none that it takes was given (RINGCRON_API_KEY)."""


class Rest:
    """The API on a port of 127.0.0.1. One connection per call: it may have been started again in between."""

    def __init__(self, port: int, api_key: str | None = None) -> None:
        """`api_key`: shown at each call; None: none is, which is enough as long as the database has no key."""
        self._port = port
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of the answer, None where it has no body. Raises ApiUnavailable, KeyNeeded."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers=self._headers if body is None else {**self._headers, "Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            text = answer.read()
            if answer.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
                raise KeyNeeded
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiUnavailable(f"the API does not answer: {error or type(error).__name__}") from error
        finally:
            connection.close()
