"""The strict reader of cron text: every token is checked here before croniter sees it.

Invariant: nothing is guessed at. A token that another cron reads in another way, or that croniter accepts and takes for
something else, is refused with why and with what to write instead. What passes reaches croniter only as plain numbers,
ranges and steps that it reads as they are meant; `L`, `W` and `#` are kept apart and decided by `local_times`.
The text alone decides how the two day fields are joined, so it is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ringcron.cron.fields import FIELDS, FieldRule, TokenFault
from ringcron.errors import ScheduleError

MAX_CHARACTERS: Final = 256
LAST: Final = -1
"""In `nth`: the last of its weekday in the month, where # gives 1 to 5."""

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PLAIN: Final = re.compile(r"(?P<low>\*|\d+|[A-Z]+)(?:-(?P<high>\d+|[A-Z]+))?(?:/(?P<step>\d+))?", re.ASCII)
_NEAREST: Final = re.compile(r"(\d+)W", re.ASCII)
_NTH: Final = re.compile(r"(\d|[A-Z]{3})#(\d+)", re.ASCII)
_LAST_WEEKDAY: Final = re.compile(r"L([0-7])", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedField:
    """One field: what croniter expands, and what it does not."""

    text: str  # normal form: capitals
    plain: str  # numbers, ranges and steps for croniter; "" when the field has special tokens only
    last_day: bool = False  # L in day-of-month
    nearest: int | None = None  # 15W
    nth: frozenset[tuple[int, int]] = frozenset()  # (weekday, 1 to 5 or LAST)

    @property
    def starred(self) -> bool:
        """Whether the text begins with `*`: it decides clock changes, and how the two day fields are joined."""
        return self.text.startswith("*")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedCron:
    """A whole expression in normal form: single spaces, capitals, aliases in small letters."""

    text: str
    fields: tuple[CheckedField, ...]


def check_cron(text: object) -> CheckedCron | list[ScheduleError]:
    """The checked expression, or every fault of it, the first field's first."""
    whole = _whole(text)
    if isinstance(whole, ScheduleError):
        return [whole]
    normal, words = whole
    fields: list[CheckedField] = []
    faults: list[ScheduleError] = []
    for rule, word in zip(FIELDS, words, strict=True):
        tokens = word.split(",")
        checked: list[CheckedField] = []
        for place, token in enumerate(tokens):
            try:
                checked.append(_token(rule, token, alone=len(tokens) == 1))
            except TokenFault as fault:
                faults.append(_fault(rule, words, tokens, place, fault))
        fields.append(_joined(word, checked))
    if faults:
        return faults
    day, weekday = fields[2], fields[4]
    if not day.starred and any(n != LAST for _, n in weekday.nth):
        message = (
            f"`{weekday.text}` in day-of-week (field 5) cannot be joined with `{day.text}` in day-of-month (field 3): "
            f"some crons take both, others either; write `*` in field 3, or two jobs"
        )
        return [ScheduleError(message, pointer="/cron", code="unsupported")]
    return CheckedCron(text=normal, fields=tuple(fields))


def _whole(text: object) -> tuple[str, list[str]] | ScheduleError:
    """(normal form, five fields), or the fault of the text as a whole."""
    if not isinstance(text, str):
        return _refused(f"must be text of five fields, such as `0 9 * * MON-FRI`, not {_kind(text)}", "type")
    if len(text) > MAX_CHARACTERS:
        return _refused(
            f"has {len(text)} characters; at most {MAX_CHARACTERS} are read: write ranges and steps", "length"
        )
    strange = next((c for c in text if not (c == "\t" or " " <= c <= "~")), None)
    if strange is not None:
        return _refused(
            f"holds the character {strange!a}: only plain ASCII is read, fields parted by spaces", "unsupported"
        )
    words = text.upper().split()
    if not words:
        return _refused("is empty: write five fields, such as `0 9 * * MON-FRI`", "required")
    if words[0].startswith("@"):
        return _alias(words)
    if len(words) != len(FIELDS):
        return _field_count(words)
    return " ".join(words), words


def _alias(words: list[str]) -> tuple[str, list[str]] | ScheduleError:
    name = words[0].lower()
    if name in ALIASES and len(words) == 1:
        return name, ALIASES[name].split()
    if name == "@reboot":
        return _refused(
            "`@reboot` has no instant: a pool of workers has no boot; write a one-off with runAt", "unsupported"
        )
    if name == "@every":
        return _refused('`@every` is not cron: write {"every": "PT5M"} for every five minutes', "unsupported")
    if name in ALIASES:
        return _refused(f"`{name}` stands alone: write `{name}`, or the five fields `{ALIASES[name]}`", "field-count")
    return _refused(f"`{name}` is not known: write one of {', '.join(ALIASES)}, or five fields", "unsupported")


def _field_count(words: list[str]) -> ScheduleError:
    names = "minute hour day-of-month month day-of-week"
    if len(words) < len(FIELDS):
        return _refused(f"has {len(words)} of five fields: write five fields, {names}", "field-count")
    why = (
        f"has {len(words)} fields: seconds and years are not supported, because croniter puts seconds last "
        f"and Quartz first; write five fields: {names}"
    )
    # Quartz counts Sunday as 1, so a number in its day-of-week cannot be carried over unseen.
    if words[0] in ("0", "00") and len(words) == 6 and not re.search(r"\d", words[5]):
        five = " ".join(words[1:]).replace("?", "*")
        if isinstance(check_cron(five), CheckedCron):
            why += f", that is `{five}`"
    return _refused(why + '; for a tick every few seconds write {"every": "PT10S"}', "field-count")


def _token(rule: FieldRule, token: str, *, alone: bool) -> CheckedField:
    """One token of a list, checked; TokenFault says why not."""
    _refuse_foreign(rule, token)
    if rule.name == "day-of-month" and token == "L":
        return CheckedField(text=token, plain="", last_day=True)
    if rule.name == "day-of-month" and (nearest := _NEAREST.fullmatch(token)):
        return CheckedField(text=token, plain="", nearest=_nearest(int(nearest[1]), alone=alone))
    if rule.name == "day-of-week" and (nth := _NTH.fullmatch(token)):
        if not 1 <= int(nth[2]) <= 5:
            raise TokenFault("a month has a first to a fifth of each weekday", code="out-of-range")
        return CheckedField(text=token, plain="", nth=frozenset({(rule.value(nth[1]) % 7, int(nth[2]))}))
    if rule.name == "day-of-week" and (last := _LAST_WEEKDAY.fullmatch(token)):
        return CheckedField(text=token, plain="", nth=frozenset({(int(last[1]) % 7, LAST)}))
    plain = _PLAIN.fullmatch(token)
    if plain is None or (plain["low"] == "*" and plain["high"]):
        raise TokenFault(f"is no token that is known: write {rule.forms}", code="unknown-token")
    return CheckedField(text=token, plain=_plain(rule, plain, alone=alone))


def _plain(rule: FieldRule, token: re.Match[str], *, alone: bool) -> str:
    """The token as croniter reads it rightly: no names, no wrap with a step, no start without an end."""
    star = token["low"] == "*"
    if star and not token["step"] and not alone:
        raise TokenFault("already means every value: write `*` alone", instead="")
    low = rule.low if star else rule.value(token["low"])
    high = rule.value(token["high"]) if token["high"] else None
    step = int(token["step"]) if token["step"] else 1
    if high is not None and rule.wrapped(low) == rule.wrapped(high) and (low, high) != (0, 7):
        why = "is a range of one value, which croniter reads as every value"
        raise TokenFault(why, code="unsupported", instead=token["low"])
    if step == 0:
        raise TokenFault("a step of 0 never moves on", instead=token["low"])
    if step >= rule.size:
        compared = "as large as" if step == rule.size else "larger than"
        why = f"a step of {step} is {compared} the field ({rule.size} values), so only {low} is left"
        raise TokenFault(why + rule.longer(step), code="step-too-large", instead=str(low))
    if high is None and not token["step"]:
        return "*" if star else str(rule.wrapped(low))
    if high is None:
        low, high = rule.wrapped(low), rule.high
    if low < high <= rule.high:
        return f"{low}-{high}/{step}"
    # croniter is off by one where a step crosses the wrap (23-3/2 gives 23, 2): the values are listed for it.
    span = (high - low) % rule.size if (low, high) != (0, 7) else rule.size - 1
    return ",".join(str(rule.low + (low - rule.low + n) % rule.size) for n in range(0, span + 1, step))


def _nearest(day: int, *, alone: bool) -> int:
    if not 1 <= day <= 28:
        why = "not every month has that day, and croniter moves it to another" if 29 <= day <= 31 else "no such day"
        raise TokenFault(f"{why}: 1W to 28W are supported; L is the last day", code="unsupported")
    if not alone:
        raise TokenFault("the nearest weekday stands alone in its field: write one job per day", code="unsupported")
    return day


def _refuse_foreign(rule: FieldRule, token: str) -> None:
    """Refuse what other crons know, each with its own advice."""
    if token == "":
        raise TokenFault("is empty between two commas: leave the comma out", code="unknown-token")
    if "?" in token:
        instead = "*" if token == "?" else None
        raise TokenFault("a question mark is Quartz's `*`", code="unsupported", instead=instead)
    if re.fullmatch(r"[HR](\(\d+-\d+\))?(/\d+)?", token):
        why = "a hashed or random value differs between parsers: choose a fixed value, and set jitter to spread jobs"
        raise TokenFault(why, code="unsupported")
    if "~" in token:
        raise TokenFault(
            "a random value differs at each reading: choose a fixed value, and set jitter", code="unsupported"
        )
    if rule.name == "day-of-month":
        if token in ("LW", "WL"):
            raise TokenFault("the last weekday of a month is not supported: L is its last day", code="unsupported")
        if re.fullmatch(r"W\d+", token):
            raise TokenFault("the day stands before the W", code="unsupported", instead=f"{token[1:]}W")
        if re.fullmatch(r"\d+-L", token):
            raise TokenFault("a range ends in a number", code="unsupported", instead=f"{token[:-1]}31")
        if re.fullmatch(r"L-\d+", token):
            raise TokenFault("days counted from the month's end are not supported: L is the last", code="unsupported")
    if rule.name == "day-of-week":
        if token == "L":
            raise TokenFault("L needs its day: write L6 for the last Saturday, or 6 for each", code="unsupported")
        last = re.fullmatch(r"([0-7]|[A-Z]{3})L|L([A-Z]{3})", token)
        if last is not None:
            day = last[1] or last[2]
            raise TokenFault(
                "the last weekday is L and a number", code="unsupported", instead=f"L{rule.value(day) % 7}"
            )
        if re.fullmatch(r".+-.+#\d+", token):
            raise TokenFault("# takes one day: write `1#1,2#1` for a list", code="unsupported")


def _joined(text: str, checked: list[CheckedField]) -> CheckedField:
    return CheckedField(
        text=text,
        plain=",".join(field.plain for field in checked if field.plain),
        last_day=any(field.last_day for field in checked),
        nearest=next((field.nearest for field in checked if field.nearest is not None), None),
        nth=frozenset().union(*(field.nth for field in checked)),
    )


def _fault(rule: FieldRule, words: list[str], tokens: list[str], place: int, fault: TokenFault) -> ScheduleError:
    """The fault as the caller reads it, with the whole expression to write where that is known."""
    message = f"`{tokens[place]}` in {rule.name} (field {rule.number}): {fault.why}"
    if fault.instead is not None:
        field = ",".join([*tokens[:place], fault.instead, *tokens[place + 1 :]]) if fault.instead else "*"
        whole = " ".join([*words[: rule.number - 1], field, *words[rule.number :]])
        message += f"; write `{whole}`"
    return ScheduleError(message, pointer="/cron", code=fault.code)


def _refused(why: str, code: str) -> ScheduleError:
    return ScheduleError(why, pointer="/cron", code=code)


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
