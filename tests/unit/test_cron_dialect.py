"""What the cron dialect takes, what it refuses, and that each refusal says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from croniter import croniter

from ringcron.errors import ScheduleError
from ringcron.schedule import parse_schedule, schedule_faults, tzdata_version
from tests.support.brute_force import utc

CREATED = utc(2026, 12, 1)


@pytest.mark.parametrize(
    ("cron", "code", "message"),
    [
        # as a whole
        ("", "required", "is empty: write five fields"),
        ("   \t ", "required", "is empty: write five fields"),
        ("* * * *", "field-count", "has 4 of five fields: write five fields, minute hour day-of-month"),
        ("0 0 12 * * *", "field-count", "croniter puts seconds last and Quartz first; write five fields"),
        ("0 0 12 * * ?", "field-count", "that is `0 12 * * *`"),
        ("0 15 10 ? * MON-FRI", "field-count", "that is `15 10 * * MON-FRI`"),
        ("0 0 12 * * 2", "field-count", 'for a tick every few seconds write {"every": "PT10S"}'),
        ("* * * * * */10", "field-count", "has 6 fields: seconds and years are not supported"),
        ("0 0 12 * * ? 2027", "field-count", "has 7 fields: seconds and years are not supported"),
        ("0 0 1 * *\n0 0 2 * *", "unsupported", r"holds the character '\n'"),
        ("0 9\u00a0* * *", "unsupported", r"holds the character '\xa0': only plain ASCII"),
        ("٣ 9 * * *", "unsupported", r"holds the character '\u0663'"),
        ("0 9 * * \u0000", "unsupported", r"holds the character '\x00'"),
        ("0 9 * * \ud800", "unsupported", r"holds the character '\ud800'"),
        (",".join(["0"] * 130) + " * * * *", "length", "has 267 characters; at most 256 are read"),
        # names that begin with @
        ("@reboot", "unsupported", "a pool of workers has no boot; write a one-off with runAt"),
        ("@every 5m", "unsupported", 'write {"every": "PT5M"}'),
        ("@fortnightly", "unsupported", "write one of @yearly, @annually, @monthly"),
        ("@daily 5", "field-count", "`@daily` stands alone: write `@daily`, or the five fields `0 0 * * *`"),
        # ranges of one value
        ("0 3-3 * * *", "unsupported", "croniter reads as every value; write `0 3 * * *`"),
        ("0 3-3/2 * * *", "unsupported", "write `0 3 * * *`"),
        ("0 0 * JAN-JAN *", "unsupported", "write `0 0 * JAN *`"),
        ("0 0 * JAN-1 *", "unsupported", "write `0 0 * JAN *`"),
        ("0 0 * * SUN-SUN", "unsupported", "write `0 0 * * SUN`"),
        ("0 0 * * 7-0", "unsupported", "write `0 0 * * 7`"),
        ("0 0,3-3 * * *", "unsupported", "write `0 0,3 * * *`"),
        # steps
        (
            "*/60 * * * *",
            "step-too-large",
            "a step of 60 is as large as the field (60 values), so only 0 is left; write `0 * ",
        ),
        ("*/90 * * * *", "step-too-large", '(an interval is written {"every": "PT90M"}); write `0 * * * *`'),
        ("0-59/61 * * * *", "step-too-large", "larger than the field (60 values), so only 0 is left"),
        ("10/60 * * * *", "step-too-large", "so only 10 is left; write `10 * * * *`"),
        ("0 */24 * * *", "step-too-large", "as large as the field (24 values), so only 0 is left; write `0 0 * * *`"),
        ("0 */36 * * *", "step-too-large", '{"every": "PT36H"}'),
        ("0 0 */31 * *", "step-too-large", "so only 1 is left; write `0 0 1 * *`"),
        ("0 0 */45 * *", "step-too-large", '{"every": "P45D"}'),
        ("0 0 1 */12 *", "step-too-large", "write `0 0 1 1 *`"),
        ("0 0 * * */7", "step-too-large", "write `0 0 * * 0`"),
        ("*/0 * * * *", "invalid", "a step of 0 never moves on; write `* * * * *`"),
        ("5/0 * * * *", "invalid", "write `5 * * * *`"),
        # values outside the field
        ("60 * * * *", "out-of-range", "must lie in 0 to 59; write `0 * * * *`"),
        ("* 24 * * *", "out-of-range", "must lie in 0 to 23; write `* 0 * * *`"),
        ("* * 0 * *", "out-of-range", "`0` in day-of-month (field 3): must lie in 1 to 31"),
        ("* * 32 * *", "out-of-range", "must lie in 1 to 31"),
        ("* * * 0 *", "out-of-range", "must lie in 1 to 12"),
        ("* * * 13 *", "out-of-range", "must lie in 1 to 12"),
        ("* * * * 8", "out-of-range", "must lie in 0 to 7"),
        ("1-60 * * * *", "out-of-range", "`1-60` in minute (field 1): must lie in 0 to 59"),
        ("-5 * * * *", "unknown-token", "`-5` in minute (field 1): is no token that is known"),
        # names
        ("0 0 * * MONDAY", "unknown-token", "names have three letters; write `0 0 * * MON`"),
        ("0 0 * * MON,TUESDAY", "unknown-token", "write `0 0 * * MON,TUE`"),
        ("0 0 * MON *", "unknown-token", "MON belongs in day-of-week (field 5)"),
        ("0 0 * * JAN", "unknown-token", "JAN belongs in month (field 4)"),
        ("0 MON * * *", "unknown-token", "MON belongs in day-of-week (field 5)"),
        ("0 0 * * FOO", "unknown-token", "is no token that is known: write 0 to 7 (0 and 7 are Sunday), SUN to SAT"),
        # other crons
        ("H * * * *", "unsupported", "choose a fixed value, and set jitter"),
        ("H/15 * * * *", "unsupported", "choose a fixed value, and set jitter"),
        ("H(0-29)/10 * * * *", "unsupported", "choose a fixed value, and set jitter"),
        ("R R * * *", "unsupported", "`R` in minute (field 1): a hashed or random value"),
        ("0~59 * * * *", "unsupported", "a random value differs at each reading"),
        ("0 0 ? * MON", "unsupported", "a question mark is Quartz's `*`; write `0 0 * * MON`"),
        ("0 0 1? * *", "unsupported", "a question mark is Quartz's `*`"),
        # day of the month
        ("0 5 LW * *", "unsupported", "the last weekday of a month is not supported: L is its last day"),
        ("0 5 WL * *", "unsupported", "the last weekday of a month is not supported"),
        ("0 5 W15 * *", "unsupported", "the day stands before the W; write `0 5 15W * *`"),
        ("0 5 29W * *", "unsupported", "not every month has that day, and croniter moves it"),
        ("0 5 31W * *", "unsupported", "1W to 28W are supported"),
        ("0 5 0W * *", "unsupported", "no such day: 1W to 28W are supported"),
        ("0 5 99999W * *", "unsupported", "no such day: 1W to 28W are supported"),
        ("0 5 1W,15 * *", "unsupported", "the nearest weekday stands alone in its field"),
        ("0 5 15,1W * *", "unsupported", "the nearest weekday stands alone in its field"),
        ("0 5 1-15W * *", "unknown-token", "`1-15W` in day-of-month (field 3): is no token that is known"),
        ("0 5 10-L * *", "unsupported", "a range ends in a number; write `0 5 10-31 * *`"),
        ("0 5 L-3 * *", "unsupported", "days counted from the month's end are not supported"),
        ("L 5 * * *", "unknown-token", "`L` in minute (field 1): is no token that is known"),
        # day of the week
        ("0 5 * * L", "unsupported", "L needs its day: write L6"),
        ("0 5 * * 5L", "unsupported", "the last weekday is L and a number; write `0 5 * * L5`"),
        ("0 5 * * FRIL", "unsupported", "write `0 5 * * L5`"),
        ("0 5 * * LFRI", "unsupported", "write `0 5 * * L5`"),
        ("0 5 * * L8", "unknown-token", "is no token that is known"),
        ("0 5 * * MON#0", "out-of-range", "a first to a fifth of each weekday"),
        ("0 5 * * MON#6", "out-of-range", "a first to a fifth of each weekday"),
        ("0 5 * * 8#1", "out-of-range", "must lie in 0 to 7"),
        ("0 5 * * MON-FRI#1", "unsupported", "# takes one day"),
        ("0 5 * * JAN#1", "unknown-token", "JAN belongs in month"),
        ("0 5 15 * 5#3", "unsupported", "cannot be joined with `15` in day-of-month (field 3)"),
        ("0 5 1-31 * MON#1", "unsupported", "write `*` in field 3, or two jobs"),
        # shape
        ("1,,2 * * * *", "unknown-token", "is empty between two commas: leave the comma out"),
        (", * * * *", "unknown-token", "is empty between two commas"),
        ("*,5 * * * *", "invalid", "already means every value: write `*` alone; write `* * * * *`"),
        ("*-5 * * * *", "unknown-token", "is no token that is known"),
        ("5-* * * * *", "unknown-token", "is no token that is known"),
        ("1-2-3 * * * *", "unknown-token", "is no token that is known"),
        ("*/5/2 * * * *", "unknown-token", "is no token that is known"),
        ("5/ * * * *", "unknown-token", "is no token that is known"),
        ("1.5 * * * *", "unknown-token", "is no token that is known"),
        ("0x5 * * * *", "unknown-token", "is no token that is known"),
        ("+5 * * * *", "unknown-token", "is no token that is known"),
        ("** * * * *", "unknown-token", "is no token that is known"),
        # dates that never come
        (
            "0 0 31 2 *",
            "never-fires",
            "day-of-month (field 3) `31` with day-of-week (field 5) `*` does not come in month",
        ),
        ("0 0 30 2 *", "never-fires", "does not come in month (field 4) `2`"),
        ("0 0 31 2,4,6,9,11 *", "never-fires", "does not come in month (field 4) `2,4,6,9,11`"),
        ("0 0 30-31 FEB *", "never-fires", "does not come in month (field 4) `FEB`"),
        ("0 0 */30 2 TUE#5", "never-fires", "does not come in month (field 4) `2`"),
    ],
)
def test_refusals(cron: str, code: str, message: str) -> None:
    faults = schedule_faults({"cron": cron, "timezone": "Europe/Madrid"}, created_at=CREATED)
    assert faults
    assert message in str(faults[0])
    assert faults[0].code == code
    assert faults[0].pointer == "/cron"
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(cron, created_at=CREATED)
    assert message in str(refusal.value)


@pytest.mark.parametrize("cron", [None, 5, 0.5, True, ["* * * * *"], {"minute": 5}])
def test_a_wrong_type_is_refused(cron: Any) -> None:
    [fault] = schedule_faults({"cron": cron, "timezone": "UTC"})
    assert fault.code == ("required" if cron is None else "type")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("  0\t9  * *   mon-fri ", "0 9 * * MON-FRI"),
        ("@Daily", "@daily"),
        ("0 9 15w * *", "0 9 15W * *"),
        ("0 9 l * *", "0 9 L * *"),
        ("0 9 * jan,feb tue#2,l5", "0 9 * JAN,FEB TUE#2,L5"),
    ],
)
def test_the_normal_form_keeps_what_was_written(written: str, normal: str) -> None:
    schedule = parse_schedule(written)
    assert schedule.document == {"cron": normal, "timezone": "UTC"}
    assert parse_schedule(schedule.document).document == schedule.document


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 * * 7", "0 0 * * SUN"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("0 0 * * 7-2", "0 0 * * SUN,MON,TUE"),
        ("0 0 * * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("0 0 28-3 * *", "0 0 28-31,1-3 * *"),
        ("0 0 1 NOV-FEB *", "0 0 1 11,12,1,2 *"),
        ("0 23-3/2 * * *", "0 23,1,3 * * *"),  # croniter: 23, 2
        ("50-10/7 * * * *", "50,57,4 * * * *"),
        ("0 0 * * SAT-WED/2", "0 0 * * 6,1,3"),
        ("0 0 * * 1-7/3", "0 0 * * 1,4,0"),
        ("0 0 * * 7/2", "0 0 * * 0,2,4,6"),
        ("59/15 * * * *", "59 * * * *"),
        ("7/20 * * * *", "7,27,47 * * * *"),
        ("10-20/15 * * * *", "10 * * * *"),
        ("0 0 * DEC/3 *", "0 0 * 12 *"),
        ("05 07 01 02 *", "5 7 1 2 *"),
        ("0 0 1,1,1 * *", "0 0 1 * *"),
        ("*/15,7 * * * *", "0,7,15,30,45 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("0 0 * * 1,FRI#2", "0 0 * * FRI#2,MON"),
        ("0 0 * * L7", "0 0 * * L0"),
        ("0 0 * * 7#1", "0 0 * * SUN#1"),
    ],
)
def test_two_ways_to_write_the_same_ticks(one: str, other: str) -> None:
    assert parse_schedule(one).upcoming(CREATED, 60) == parse_schedule(other).upcoming(CREATED, 60)


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 0 */2 * 1", [7, 21]),  # AND: Mondays that are odd days
        ("0 0 * * 1", [7, 14, 21, 28]),
        ("0 0 1-3 * 1", [1, 2, 3, 7, 14, 21, 28]),  # OR: neither begins with `*`
        ("0 0 1-31 * 1", list(range(1, 32))),
        ("0 0 13 * */2", [13]),  # AND: the 13th is a Sunday
        ("0 0 14 * */2", []),
        ("0 0 L * 5", [4, 11, 18, 25, 31]),
        ("0 0 * * L4", [31]),
        ("0 0 * * 4#5", [31]),
        ("0 0 */2 * 4#5", [31]),
        ("0 0 */2 * FRI#1", []),  # 4 December
        ("0 0 13W * *", [14]),
        ("0 0 13W * MON", [7, 14, 21, 28]),
        ("0 0 5W * SAT", [4, 5, 12, 19, 26]),
        ("0 0 2 * L5", [2, 25]),
    ],
)
def test_days_of_december_2026(cron: str, days: list[int]) -> None:
    schedule = parse_schedule(cron)
    begin, end = utc(2026, 11, 30, 23), utc(2026, 12, 31, 23)
    ticks = [tick for tick in schedule.upcoming(begin, 31) if tick <= end]
    assert [tick.day for tick in ticks] == days
    assert schedule.count(begin, end) == len(days)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 0 1W 5 *", utc(2027, 5, 3)),  # a Saturday: not back into April
        ("0 0 28W 2 *", utc(2027, 2, 26)),  # a Sunday and the last day: not on into March
        ("0 0 L 2 *", utc(2027, 2, 28)),
    ],
)
def test_the_nearest_weekday_never_leaves_the_month(cron: str, expected: Any) -> None:
    assert parse_schedule(cron).next_after(CREATED) == expected


def test_croniter_is_still_as_wrong_as_the_dialect_says() -> None:
    """When one of these fails after an upgrade, a message of ours is no longer true."""
    assert croniter.expand("0 3-3 * * *")[0][1] == ["*"]
    assert croniter.expand("0 23-3/2 * * *")[0][1] == [2, 23]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Madird", "Europe/Madrid"),
        ("europe/madrid", "Europe/Madrid"),
        ("Madrid", "Europe/Madrid"),
        ("America/New York", "America/New_York"),
        ("US/NewYork", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_an_unknown_zone_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(ScheduleError, match=f"did you mean {near}") as refusal:
        parse_schedule({"cron": "0 9 * * *", "timezone": name})
    assert refusal.value.pointer == "/timezone"
    assert refusal.value.code == "unknown-timezone"


@pytest.mark.parametrize(
    "name", ["", "+02:00", "../../etc/passwd", "posixrules", "localtime", "x" * 500, "\u0000", "\ud800"]
)
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule({"cron": "0 9 * * *", "timezone": name})
    assert refusal.value.pointer == "/timezone"
    assert len(str(refusal.value)) < 300
    str(refusal.value).encode()


def test_all_faults_at_once() -> None:
    document = {
        "cron": "60 25 * * *",
        "timezone": "Nowhere/X",
        "startAt": "soon",
        "maxRuns": 0,
        "jitter": "PT1S",
        "Cron": 1,
    }
    faults = schedule_faults(document, created_at=CREATED)
    assert [(fault.pointer, fault.code) for fault in faults] == [
        ("/jitter", "unknown-field"),
        ("/Cron", "unknown-field"),
        ("/timezone", "unknown-timezone"),
        ("/cron", "out-of-range"),
        ("/cron", "out-of-range"),
        ("/startAt", "invalid"),
        ("/maxRuns", "out-of-range"),
    ]
    assert "did you mean cron" in str(faults[1])


@pytest.mark.parametrize(
    ("document", "pointer", "code"),
    [
        (None, "", "type"),
        (5, "", "type"),
        ([], "", "type"),
        ({}, "", "required"),
        ({"timezone": "UTC"}, "", "required"),
        ({"cron": "0 9 * * *", "every": "PT1H"}, "", "invalid"),
        ({"cron": "0 9 * * *", "anchor": "2027-01-01T00:00:00Z"}, "/anchor", "invalid"),
        ({"every": "PT1H", "timezone": "UTC"}, "/timezone", "invalid"),
        ({"cron": "0 9 * * *", "timezone": 5}, "/timezone", "type"),
        ({"cron": "0 9 * * *", "startAt": 5}, "/startAt", "type"),
        ({"cron": "0 9 * * *", "endAt": "2027-01-01T00:00:00"}, "/endAt", "invalid"),
        (
            {"cron": "0 9 * * *", "startAt": "2027-01-02T00:00:00Z", "endAt": "2027-01-01T00:00:00Z"},
            "/endAt",
            "out-of-range",
        ),
        ({"cron": "0 9 * * *", "endAt": "2026-12-01T08:59:59Z"}, "/endAt", "never-fires"),
        ({"cron": "0 9 * * *", "maxRuns": True}, "/maxRuns", "type"),
        ({"cron": "0 9 * * *", "maxRuns": 1.5}, "/maxRuns", "type"),
        ({"cron": "0 9 * * *", "maxRuns": 2**31}, "/maxRuns", "out-of-range"),
        ({"cron": "0 9 * * *", "a/b~c": 1}, "/a~1b~0c", "unknown-field"),
    ],
)
def test_members(document: Any, pointer: str, code: str) -> None:
    [fault] = schedule_faults(document, created_at=CREATED)
    assert (fault.pointer, fault.code) == (pointer, code)


def test_many_unknown_members_cost_no_more_than_twenty() -> None:
    assert len(schedule_faults({f"member{n}": 1 for n in range(100_000)})) == 21


def test_start_and_end_are_included() -> None:
    document = {
        "cron": "0 9 * * *",
        "timezone": "Europe/Madrid",
        "startAt": "2026-12-03T09:00:00+01:00",
        "endAt": "2026-12-05T08:00:00Z",
        "maxRuns": 7,
    }
    schedule = parse_schedule(document, created_at=CREATED)
    assert schedule.upcoming(CREATED, 10) == [utc(2026, 12, 3, 8), utc(2026, 12, 4, 8), utc(2026, 12, 5, 8)]
    assert schedule.count(CREATED, utc(2027, 1, 1)) == 3
    assert schedule.latest(CREATED, utc(2027, 1, 1)) == utc(2026, 12, 5, 8)
    assert schedule.latest(CREATED, utc(2026, 12, 3, 7, 59)) is None
    assert schedule.next_after(utc(2026, 12, 5, 8)) is None
    assert schedule.max_runs == 7
    assert schedule.timezone == "Europe/Madrid"
    assert schedule.document == {**document, "startAt": "2026-12-03T08:00:00Z"}
    assert parse_schedule(schedule.document) == parse_schedule(schedule.document)


def test_null_members_are_absent() -> None:
    document = {"cron": "0 9 * * *", "timezone": None, "every": None, "endAt": None, "maxRuns": None}
    assert parse_schedule(document).document == {"cron": "0 9 * * *", "timezone": "UTC"}


def test_the_edges_of_time() -> None:
    schedule = parse_schedule("* * * * *")
    assert schedule.next_after(utc(1, 1, 1)) == utc(2000, 1, 1)
    assert schedule.next_after(utc(8999, 12, 31, 23, 58)) == utc(8999, 12, 31, 23, 59)
    for late in (utc(8999, 12, 31, 23, 59), utc(9500, 1, 1), utc(9999, 12, 31, 23, 59)):
        with pytest.raises(ScheduleError, match="no tick after"):
            schedule.next_after(late)
    assert schedule.count(utc(1999, 1, 1), utc(2000, 1, 1, 0, 1)) == 2
    assert schedule.count(utc(2027, 1, 1), utc(2026, 1, 1)) == 0
    assert schedule.latest(utc(2027, 1, 1), utc(2026, 1, 1)) is None
    assert schedule.upcoming(utc(8999, 12, 31, 23, 57), 9) == [utc(8999, 12, 31, 23, 58), utc(8999, 12, 31, 23, 59)]


def test_a_rare_date_is_found_again_although_it_is_more_than_eight_years_off() -> None:
    schedule = parse_schedule("0 0 29 2 */6", created_at=CREATED)  # 29 February on a Saturday or Sunday
    assert schedule.upcoming(CREATED, 3) == [utc(2032, 2, 29), utc(2048, 2, 29), utc(2060, 2, 29)]
    with pytest.raises(ScheduleError, match="no tick within eight years"):
        parse_schedule("0 0 29 2 */6", created_at=utc(2033, 1, 1))


def test_a_year_of_minutes_is_counted() -> None:
    schedule = parse_schedule({"cron": "* * * * *", "timezone": "Europe/Berlin"})
    assert schedule.count(utc(2026, 1, 1), utc(2027, 1, 1)) == 365 * 1440


def test_the_zone_rules_are_the_packages() -> None:
    assert tzdata_version()[:2] == "20"
    with pytest.raises(ScheduleError):
        parse_schedule({"cron": "0 9 * * *", "timezone": "posix/Europe/Madrid"})  # on many machines, not in the package
