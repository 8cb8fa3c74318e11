"""Parts of chaos runs that are pure: the proxy's eyes, the sink's pairs, ticks, turns, what is told of a violation."""

from __future__ import annotations

import struct

import pytest

from loadtest.chaos.asked import ANCHOR, Asked
from loadtest.chaos.campaign import Campaign
from loadtest.chaos.history import Fault, History, Hit, Run, Version, Violation
from loadtest.chaos.nemeses import NEMESES, QUICK
from loadtest.chaos.nemeses.zookeeper import password_of
from loadtest.chaos.proxy import Answers, Statements
from loadtest.chaos.sink import told_from
from loadtest.chaos.telling import told
from loadtest.chaos.timeline import draw, leases_of

JOB = "01900000-0000-7000-8000-000000000001"
SSL = struct.pack("!II", 8, 80877103)
STARTUP = struct.pack("!II", 12, 196608) + b"abcd"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def groups(*parts: bytes) -> list[tuple[bytes, bool, bool]]:
    statements = Statements()
    return [group for part in parts for group in statements.feed(part)]


def extended(text: bytes, name: bytes = b"") -> bytes:
    parse = message(b"P", name + b"\0" + text + b"\0\0\0")
    return parse + message(b"B", b"\0" + name + b"\0") + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")


def test_the_proxy_passes_everything_on_in_groups_that_are_answered() -> None:
    sent = SSL + STARTUP + extended(b"select 1") + message(b"Q", b"commit\0")
    found = groups(*(sent[at : at + 7] for at in range(0, len(sent), 7)))
    assert b"".join(group for group, _, _ in found) == sent
    assert [(writes, commits) for _, writes, commits in found] == [(False, False)] * 3 + [(False, True)]


@pytest.mark.parametrize(
    ("text", "writes"),
    [(b"select 1", False), (b"with x as (UPDATE jobs set a = 1 returning 1) select 1", True), (b"begin", False)],
)
def test_the_proxy_knows_what_writes(text: bytes, writes: bool) -> None:
    assert groups(STARTUP, extended(text))[-1][1] is writes


def test_the_proxy_remembers_what_a_prepared_statement_does() -> None:
    again = message(b"B", b"\0_pg3_0\0") + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")
    assert groups(STARTUP, extended(b"delete from jobs", b"_pg3_0"), again)[-1][1:] == (True, False)


def test_the_proxy_sees_when_the_server_is_ready() -> None:
    answers = Answers()
    answers.raw = 1
    for byte in b"N" + message(b"T", b"abc") + message(b"Z", b"T") + message(b"Z", b"I"):
        answers.feed(bytes([byte]))
    assert (answers.ready, answers.state) == (2, b"I")


def test_a_session_has_the_password_that_java_would_give_it() -> None:
    seeded_by_42 = 42 ^ 0xB3415C00
    assert password_of(seeded_by_42)[:4] == (-1170105035).to_bytes(4, "little", signed=True)
    assert len(password_of(-5)) == 16


def test_a_run_that_begins_twice_shows_as_two() -> None:
    begin = {"what": "begin", "job": JOB, "generation": 1, "scheduledFor": 5.0, "attempt": 1, "worker": "w"}
    runs = told_from([{**begin, "token": "a", "at": 5.0}, {**begin, "token": "b", "at": 6.0}, _end("a", 7.0)])
    assert [(run.begin, run.end) for run in runs] == [(5.0, 7.0), (6.0, None)]


def _end(token: str, at: float) -> dict[str, object]:
    return {"what": "end", "token": token, "at": at}


def test_ticks_are_whole_periods_after_the_anchor_and_after_the_creation() -> None:
    asked = Asked(name="j", every=7, start=ANCHOR + 1, end=ANCHOR + 21)
    assert asked.ticks(ANCHOR) == (ANCHOR + 7, ANCHOR + 14, ANCHOR + 21)
    assert asked.ticks(ANCHOR + 7) == (ANCHOR + 14, ANCHOR + 21)
    assert Asked(name="j", run_at=ANCHOR).ticks(ANCHOR) == ()


@pytest.mark.parametrize(("at_once", "seconds"), [(1, 150.0), (2, 150.0), (2, 1200.0)])
def test_each_nemesis_has_its_turn_in_an_order_by_the_seed(at_once: int, seconds: float) -> None:
    def turns(seed: int) -> list[tuple[str, ...]]:
        campaign = Campaign(numbers=QUICK, seconds=seconds, seed=seed, due_per_second=1, at_once=at_once)
        campaign.nemeses = dict.fromkeys(QUICK)  # type: ignore[arg-type]
        return list(campaign.turns())

    assert turns(1) == turns(1) != turns(2)
    assert {number for turn in turns(1) for number in turn} == set(QUICK)
    for turn in turns(1):
        assert len({NEMESES[number].part for number in turn}) == len(turn) <= at_once


def test_the_quick_set_is_part_of_the_catalogue() -> None:
    assert set(QUICK) <= NEMESES.keys()
    assert all(number == kind.number and kind.title and kind.__doc__ for number, kind in NEMESES.items())


def history() -> History:
    row = {"job": JOB, "next_run_at": 100.0, "scheduled_for": 100.0}
    held = {"owner": "worker-1.a", "lease_until": 106.0}
    return History(
        versions=[
            Version(seq=1, at=90.0, change="insert", state="due", generation=0, **row),  # type: ignore[arg-type]
            Version(seq=2, at=100.0, change="update", state="claimed", generation=1, **row, **held),  # type: ignore[arg-type]
            Version(seq=3, at=106.5, change="update", state="due", generation=1, **row),  # type: ignore[arg-type]
        ],
        runs=[
            Run(
                job=JOB,
                generation=1,
                claimed_at=100.0,
                finished_at=106.5,
                attempt=1,
                scheduled_for=100.0,
                cause="schedule",
                worker="worker-1.a",
                outcome="lost",
            )
        ],
        hits=[Hit(job=JOB, generation=1, scheduled_for=100.0, attempt=1, worker="worker-1.a", begin=100.1, end=101.0)],
        faults=[Fault(name="N2", target="worker-1.", begin=100.5, end=108.0)],
        ended_at=120.0,
    )


def test_a_violation_is_told_with_what_lies_around_it() -> None:
    text = told(history(), Violation(invariant="I4", job=JOB, message="why", evidence=(history().hits[0],)))
    assert text.startswith("I4: why")
    for part in ("row: claimed", "sink: 1 begins", "N2 on worker-1. begins"):
        assert part in text
    assert "(insert)" not in text  # ten seconds before


def test_the_timeline_shows_a_lease_that_was_taken_back() -> None:
    (lease,) = leases_of(history())
    assert (lease.worker, lease.begin, lease.end, lease.lost) == ("worker-1.a", 100.0, 106.5, True)
    page = draw(history(), "a <title>")
    assert page.count('class="lost"') == 2  # the key, and the bar
    assert "a &lt;title&gt;" in page
