"""What a browser may send here while no key is needed: by which names we are called, and from which pages. Pure.

Invariant: without keys a loopback address is not proof enough of who calls, because the browser of somebody on this
machine runs the pages of strangers. A name that a stranger made to point here (DNS rebinding) is refused, and so is a
write from a page that is not ours. What only programs send is no danger, whatever name they call us by: a browser
always tells its languages, and no page can keep it from that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs

FORWARDED_HOST: Final = "X-Forwarded-Host"
_FETCH_SITE: Final = "Sec-Fetch-Site"


class Hosts:
    """The names by which one API process is called without a key, where it is reached over a loopback address."""

    def __init__(self, names: Collection[str]) -> None:
        """`names`: others than those of the loopback interface."""
        self._names = frozenset(_plain(name) for name in names)

    def know(self, host: str, reached_at: object) -> bool:
        """Whether `host`, as the header says it, is a name of ours. `reached_at`: our side of the connection; any name
        is good where that is not a loopback address, which takes --insecure."""
        if not isinstance(reached_at, tuple) or not _is_loopback(str(reached_at[0]).partition("%")[0]):
            return True
        name = _name_in(host)
        if name is None:
            return False
        return name == "localhost" or name.endswith(".localhost") or _is_loopback(name) or name in self._names


def is_from_browser(headers: Mapping[str, str]) -> bool:
    """Whether a browser may have sent this: no page can take all of these headers away."""
    return any(name in headers for name in (hdrs.ACCEPT_LANGUAGE, hdrs.ORIGIN, hdrs.REFERER, _FETCH_SITE))


def is_from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether the browser says that a page of ours sends this."""
    return _is_ours(headers, headers.get(hdrs.ORIGIN) or headers.get(hdrs.REFERER, "")) and _same_site(headers)


def is_from_another_page(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of others sends this; programs say nothing."""
    origin = headers.get(hdrs.ORIGIN)
    return not _same_site(headers, "none") or (origin is not None and not _is_ours(headers, origin))


def _same_site(headers: Mapping[str, str], *more: str) -> bool:
    return headers.get(_FETCH_SITE, "same-origin") in ("same-origin", *more)


def _is_ours(headers: Mapping[str, str], origin: str) -> bool:
    ours = {headers.get(hdrs.HOST, ""), headers.get(FORWARDED_HOST, "")} - {""}
    try:
        return urlsplit(origin).netloc in ours
    except ValueError:
        return False


def _name_in(host: str) -> str | None:
    """The name in a header `Host`, without its port; None where it is none."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return None
    return None if name is None else _plain(name)


def _plain(name: str) -> str:
    return name.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback if mapped is None else mapped.is_loopback
