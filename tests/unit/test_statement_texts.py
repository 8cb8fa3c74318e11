"""What holds for the texts of all statements, whatever they do."""

from __future__ import annotations

import re
from importlib import resources
from typing import Final

import pytest

from ringcron_sql import query

NAMES: Final = sorted(
    file.name.removesuffix(".sql") for file in resources.files("ringcron_sql").joinpath("queries").iterdir()
)
LEASES: Final = ("claim", "renew_leases")


def test_only_the_bell_notifies() -> None:
    """P13: a NOTIFY in a transaction that claims or completes would make all of them commit one after the other."""
    assert [name for name in NAMES if "notify" in query(name).lower()] == ["ring_bell"]


@pytest.mark.parametrize("name", LEASES)
def test_a_lease_counts_from_the_moment_of_the_write(name: str) -> None:
    """P17: now() stands still in a transaction, so a statement that waited for a row would cut its lease short."""
    (value,) = re.findall(r"lease_until = (\S+) \+ make_interval\(secs => %\(lease\)s\)", query(name))
    assert value == "clock_timestamp()"


def test_no_statement_leaves_anything_in_its_session() -> None:
    """P12: a setting, a cursor or an advisory lock of a session is gone, or somebody else's, behind a pooler.
    The one exception can be done without (RINGCRON_BELL=poll)."""
    of_the_session = re.compile(r"(set|prepare|declare|listen)\b|.*\bpg_advisory_lock\b", re.DOTALL)
    assert [name for name in NAMES if of_the_session.match(query(name).lower())] == ["listen_bell"]
