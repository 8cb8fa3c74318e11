"""The few calls that the harness makes to the API by itself, over one connection that is kept open.

Not ringcron's client: its retries would hide what is measured.
"""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from loadtest.cluster.errors import ClusterError

TIMEOUT_SECONDS = 60.0


class ApiConnection:
    """One connection. A context."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        address = urlsplit(url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(address.netloc, timeout=TIMEOUT_SECONDS)
        self._path = address.path
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._connection.close()

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and text of the answer."""
        self._connection.request(method, self._path + path, body=body, headers=self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def call(self, method: str, path: str, body: object = None, *, expect: int) -> Any:
        """The JSON of the answer, None where it has none. Raises ClusterError for another status."""
        status, text = self.send(method, path, None if body is None else json.dumps(body).encode())
        if status != expect:
            raise ClusterError(f"{method} {path} answered {status}: {text[:300].decode(errors='replace')}")
        return json.loads(text) if text else None
