"""Which addresses the http handler may connect to."""

from __future__ import annotations

import pytest

from ringcron.addresses import AddressPolicy
from ringcron.errors import ConfigError

REFUSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "224.0.0.1",
    "239.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%2",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "::127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a9fe:a9fe",
    "2001:0:7f00:1::",
    "not an address",
    "",
]


@pytest.mark.parametrize("address", REFUSED)
def test_refused(address: str) -> None:
    assert AddressPolicy().refusal(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "10.1.2.3", "192.168.0.1", "2606:2800:220:1::", "fd00::1", "::ffff:8.8.8.8"]
)
def test_not_refused(address: str) -> None:
    assert AddressPolicy().refusal(address) is None


def test_the_allow_list_exempts_in_every_form() -> None:
    policy = AddressPolicy(allow=["127.0.0.0/8"])

    assert policy.refusal("127.0.0.1") is None
    assert policy.refusal("::ffff:127.0.0.1") is None
    assert policy.refusal("169.254.169.254")
    assert policy.refusal("::1")
    assert AddressPolicy(allow=["::1"]).refusal("::1") is None


def test_the_deny_list_adds_and_counts_before_the_allow_list() -> None:
    policy = AddressPolicy(allow=["127.0.0.0/8", "10.0.0.0/8"], deny=["10.0.0.0/8", "127.0.0.2", "fd00::/8"])

    assert policy.refusal("10.9.9.9") == "on the deny list"
    assert policy.refusal("::ffff:10.9.9.9") == "on the deny list"
    assert policy.refusal("64:ff9b::a09:909") == "on the deny list"
    assert policy.refusal("127.0.0.2") == "on the deny list"
    assert policy.refusal("fd00::1") == "on the deny list"
    assert policy.refusal("127.0.0.1") is None


def test_what_is_no_network_is_a_fault_of_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"(?s)http_allow: .*localhost.*http_deny: .*10\.0"):
        AddressPolicy(allow=["localhost"], deny=["10.0"])
