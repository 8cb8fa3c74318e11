"""Read the text of one setting into its value.

Each reader takes the text of a variable, a file or a flag. It returns the value, or raises ValueError with what would
be right ("must be …"), never with the text itself: that may be a secret, and the caller knows which setting it reads.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Any, Final

from ringcron.durations import parse_duration
from ringcron.handlers import HANDLER_NAME

Reader = Callable[[str], Any]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_ZOOKEEPER: Final = re.compile(r"(?P<hosts>[^\s,/]+(,[^\s,/]+)*)(?P<chroot>(/[^\s/]+)*)/?")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:(?P<port>\d{1,5}))?")
_SIZE: Final = re.compile(r"(?P<number>\d{1,15})\s*(?P<unit>B|KiB|MiB|GiB|TiB)?")
_UNITS: Final = {None: 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})


def integer(low: int, high: int) -> Reader:
    """A whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def seconds(low: float, high: float) -> Reader:
    """A duration from `low` to `high` seconds, written in seconds (`1.5`) or in ISO 8601 (`PT1.5S`, `P30D`)."""

    def read(text: str) -> float:
        try:
            value = float(text) if not text.upper().startswith("P") else parse_duration(text).total_seconds()
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(
                f"must be a duration from {low:g} to {high:g} seconds, in seconds (30) or in ISO 8601 (PT30S)"
            )
        return value

    return read


def choice(*words: str) -> Reader:
    """One of some words."""

    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text.lower()

    return read


def optional(reader: Reader) -> Reader:
    """What `reader` reads, or `none`."""

    def read(text: str) -> Any:
        if text.lower() == "none":
            return None
        try:
            return reader(text)
        except ValueError as error:
            raise ValueError(f"{error}, or none") from None

    return read


def several(reader: Reader) -> Reader:
    """Any number of what `reader` reads, with commas between them."""

    def read(text: str) -> tuple[Any, ...]:
        return tuple(reader(part.strip()) for part in text.split(",") if part.strip())

    return read


def flag(text: str) -> bool:
    """Yes or no."""
    if text.lower() not in _YES | _NO:
        raise ValueError("must be true or false")
    return text.lower() in _YES


def size(text: str) -> int:
    """A number of bytes: `1000000`, `64MiB`, `20 GiB`."""
    form = _SIZE.fullmatch(text)
    if form is None or int(form["number"]) == 0:
        raise ValueError("must be a number of bytes such as 500MiB or 20GiB")
    return int(form["number"]) << _UNITS[form["unit"]]


def name(text: str) -> str:
    """The stable name of a process among its kind."""
    if len(text) > 100 or not NAME.fullmatch(text):
        raise ValueError("must be 1 to 100 letters, digits and _ - with single dots between them")
    return text


def handler(text: str) -> str:
    """The name of a handler."""
    if not HANDLER_NAME.fullmatch(text):
        raise ValueError("must be the name of a handler: 1 to 128 letters, digits and _.:/-")
    return text


def module(text: str) -> str:
    """A Python module by its dotted name, or a .py file."""
    if text.endswith(".py") or all(part.isidentifier() for part in text.split(".")):
        return text
    raise ValueError("must be a Python module (my.jobs) or file (my/jobs.py)")


def network(text: str) -> str:
    """An IP network, or one address, in its normal form."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise ValueError("must be an IP network such as 10.0.0.0/8 or fd00::/8") from None


def host(text: str) -> str:
    """A host name or an IP address to listen on."""
    form = _HOST.fullmatch(text)
    if form is None and not _is_address(text):
        raise ValueError("must be a host name or an IP address")
    if form is not None and form["port"] is not None:
        raise ValueError("must be a host name or an IP address without a port: the port is a setting of its own")
    return text


def database_url(text: str) -> str:
    """Where PostgreSQL is: a URL, or libpq's `key=value` form."""
    if re.match(r"postgres(ql)?://\S+$", text) or re.match(r"\s*\w+\s*=", text):
        return text
    raise ValueError("must look like postgresql://user:password@host:5432/database")


def http_url(text: str) -> str:
    """Where something is called by HTTP."""
    if re.fullmatch(r"https?://[^\s/?#]+(?:[/?#]\S*)?", text):
        return text
    raise ValueError("must look like https://alerts.example.com/hook")


def zookeeper(text: str) -> str:
    """ZooKeeper's hosts, with ports and a chroot as wanted."""
    form = _ZOOKEEPER.fullmatch(text)
    hosts = [] if form is None else [_HOST.fullmatch(part) for part in form["hosts"].split(",")]
    if form is None or not all(part and int(part["port"] or 2181) in range(1, 65536) for part in hosts):
        raise ValueError("must look like h1:2181,h2:2181,h3:2181/ringcron")
    return form["hosts"] + form["chroot"]


def is_loopback(text: str) -> bool:
    """Whether listening on this address is listening to this machine alone."""
    return text.lower() == "localhost" or (_is_address(text) and ipaddress.ip_address(text).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
