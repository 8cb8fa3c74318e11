"""The cron dialect of contract.md §7.

tokens        the text → checked fields; every refusal and its advice
local_times   checked fields → the local minutes that they name
zones         the tz database, from the tzdata package only
enumerator    local minutes and a zone → ticks: next, previous and count from one enumeration
"""

from ringcron.cron.enumerator import ClockMark, Cron, compile_cron
from ringcron.cron.tokens import CheckedCron, check_cron
from ringcron.cron.zones import Zone, known_zone, nearest_zone, tzdata_version

__all__ = [
    "CheckedCron",
    "ClockMark",
    "Cron",
    "Zone",
    "check_cron",
    "compile_cron",
    "known_zone",
    "nearest_zone",
    "tzdata_version",
]
