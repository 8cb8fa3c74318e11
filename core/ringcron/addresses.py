"""Which addresses the http handler, and the alerts of jobs, may connect to.

Refused: loopback, link-local (with it the metadata services of clouds), multicast, unspecified, and addresses that
carry such an IPv4 address inside (mapped, compatible, 6to4, Teredo, NAT64). The deny list adds networks and counts
before all else. The allow list exempts networks from what is refused by itself. Judged is the address that a socket is
about to connect to, never a name: neither an odd spelling nor a name that changes its address (DNS rebinding) passes.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final

from ringcron.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_THIS_NETWORK: Final = ipaddress.ip_network("0.0.0.0/8")
_COMPATIBLE: Final = ipaddress.ip_network("::/96")
_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/96"))


class TargetRefused(OSError):
    """The address may not be connected to."""


class AddressPolicy:
    """The judge. ConfigError where a list holds what is no network."""

    def __init__(self, *, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        faults: list[str] = []
        self._allow = _networks("http_allow", allow, faults)
        self._deny = _networks("http_deny", deny, faults)
        if faults:
            raise ConfigError(faults)

    def sockets(self, refusals: list[str]) -> Callable[[tuple[Any, ...]], socket.socket]:
        """A maker of sockets for an HTTP client: it judges the very address that is then connected to. What it refuses
        it notes in `refusals`, and raises TargetRefused."""

        def socket_for(address: tuple[Any, ...]) -> socket.socket:
            family, kind, protocol, _, target = address
            reason = self.refusal(target[0])
            if reason is not None:
                refusals.append(f"{target[0]} is {reason}")
                raise TargetRefused(refusals[-1])
            return socket.socket(family=family, type=kind, proto=protocol)

        return socket_for

    def refusal(self, address: str) -> str | None:
        """Why a connection to this address is refused; None where it is not."""
        try:
            literal = ipaddress.ip_address(address)
        except ValueError:
            return "not an address"
        candidates = _meant_by(literal)
        for candidate in candidates:
            if _within(candidate, self._deny):
                return "on the deny list"
        for candidate in candidates:
            kind = _kind(candidate)
            if kind is not None and not _within(candidate, self._allow):
                return kind
        return None


def _networks(setting: str, texts: Iterable[str], faults: list[str]) -> list[Network]:
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError as error:
            faults.append(f"{setting}: {error}")
    return networks


def _within(address: Address, networks: list[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _meant_by(address: Address) -> list[Address]:
    """The address as it is judged, and the IPv4 addresses that it carries. A mapped address *is* its IPv4 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner: list[Address] = []
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner += address.teredo
    if any(address in network for network in (_COMPATIBLE, *_NAT64)) and int(address) & 0xFFFFFFFF > 1:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [ipaddress.IPv6Address(int(address)), *inner]  # without its zone


def _kind(address: Address) -> str | None:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified or _within(address, [_THIS_NETWORK]):
        return "an unspecified address"
    return None
