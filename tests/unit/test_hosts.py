"""By which names and from which pages the API is called while no key is needed."""

from __future__ import annotations

import pytest

from ringcron_api.hosts import Hosts, is_from_another_page, is_from_own_page

HOSTS = Hosts(["Sched.example", "[fd00::7]"])
HERE = ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8080", "localhost.", "app.localhost:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"),
        *("sched.example", "sched.example.:8080", "SCHED.EXAMPLE", "[fd00::7]:8080", "[::ffff:127.0.0.1]"),
    ],
)
def test_names_of_this_machine_and_those_that_were_named(host: str) -> None:
    assert HOSTS.know(host, HERE)


@pytest.mark.parametrize(
    "host",
    [
        *("", ":8080", "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("notlocalhost", "10.0.0.1", "0.0.0.0", "[", "[::1", "[::2]", "sched.example@evil.example", "2130706433"),
    ],
)
def test_any_other_name_is_a_strangers(host: str) -> None:
    for reached_at in (HERE, ("::1", 8080, 0, 0), ("::ffff:127.0.0.1", 8080, 0, 0), ("::1%lo", 8080, 0, 1)):
        assert not HOSTS.know(host, reached_at)
    for reached_at in (("10.0.0.1", 8080), "/run/ringcron.sock", None):  # not over the loopback interface
        assert HOSTS.know(host, reached_at)


@pytest.mark.parametrize(
    ("headers", "own", "another"),
    [
        ({}, False, False),  # a program
        ({"Origin": "http://127.0.0.1:8080"}, True, False),
        ({"Origin": "https://sched.example", "X-Forwarded-Host": "sched.example"}, True, False),
        ({"Referer": "http://127.0.0.1:8080/dashboard", "Sec-Fetch-Site": "same-origin"}, True, False),
        ({"Origin": "http://evil.example"}, False, True),
        ({"Origin": "http://127.0.0.1:3000"}, False, True),
        ({"Origin": "null"}, False, True),
        ({"Origin": ""}, False, True),
        ({"Origin": "http://["}, False, True),
        ({"Referer": "http://["}, False, False),
        ({"Sec-Fetch-Site": "cross-site"}, False, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8080"}, False, True),
        ({"Sec-Fetch-Site": "none"}, False, False),  # typed by a person
    ],
)
def test_what_a_browser_says_of_the_page(headers: dict[str, str], own: bool, another: bool) -> None:
    headers = {"Host": "127.0.0.1:8080", **headers}
    assert (is_from_own_page(headers), is_from_another_page(headers)) == (own, another)
