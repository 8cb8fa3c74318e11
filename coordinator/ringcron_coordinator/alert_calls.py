"""Telling a breach to the address that people gave (`RINGCRON_ALERT_URL`): one POST each.

Invariant: what counts as told is an answer of 2xx; anything else is tried again, at growing distances, so that a breach
is told at least once. The address is judged like that of an HTTP target (ringcron.addresses), no redirect is followed,
and the address, which may hold a secret, stands in no log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from ringcron.addresses import AddressPolicy

CALL_SECONDS: Final = 10.0


class NotTold(Exception):
    """The call failed; the message says why, without the address."""


class AlertCalls:
    """Calls one address."""

    def __init__(self, url: str, policy: AddressPolicy) -> None:
        self._url = url
        self._policy = policy

    async def tell(self, document: Mapping[str, Any], *, once: str) -> None:
        """POST the document; `once` is its Idempotency-Key. Raises NotTold."""
        refusals: list[str] = []
        try:
            async with asyncio.timeout(CALL_SECONDS):
                status = await self._post(orjson.dumps(document), once, refusals)
        except TimeoutError:
            raise NotTold(f"no answer within {CALL_SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if refusals:
                raise NotTold(f"the address is refused: {', '.join(refusals)}; see RINGCRON_HTTP_ALLOW") from None
            raise NotTold(type(error).__name__) from None
        if not 200 <= status < 300:
            raise NotTold(f"the answer was {status}")

    async def _post(self, body: bytes, once: str, refusals: list[str]) -> int:
        connector = aiohttp.TCPConnector(
            use_dns_cache=False, socket_factory=self._policy.sockets(refusals), force_close=True
        )
        headers = {"Content-Type": "application/json", "Idempotency-Key": once, "User-Agent": "ringcron"}
        async with (
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.post(self._url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            return response.status
