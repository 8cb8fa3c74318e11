"""Random cron expressions that the strict reader accepts."""

from __future__ import annotations

import random

from ringcron.cron import check_cron


def random_expression(draw: random.Random) -> str:
    """A random expression that the strict reader accepts; hours lean to the night, when clocks change."""
    while True:
        expression = " ".join((_minute(draw), _hour(draw), _day(draw), _month(draw), _weekday(draw)))
        if not isinstance(check_cron(expression), list):
            return expression


def _numbers(draw: random.Random, low: int, high: int) -> str:
    size = high - low + 1
    form = draw.randrange(7)
    value, other = draw.randint(low, high), draw.randint(low, high)
    step = draw.randint(1, size - 1)
    match form:
        case 0:
            return str(value)
        case 1:
            return ",".join(str(draw.randint(low, high)) for _ in range(draw.randint(2, 4)))
        case 2 if value != other:
            return f"{value}-{other}"
        case 3 if value != other:
            return f"{value}-{other}/{step}"
        case 4:
            return f"*/{step}"
        case 5:
            return f"{value}/{step}"
        case _:
            return "*"


def _minute(draw: random.Random) -> str:
    return (
        draw.choice(("0", "30", "*", "*/20", "0,30", "59", "15-45/15")) if draw.random() < 0.4 else _list(draw, 0, 59)
    )


def _hour(draw: random.Random) -> str:
    night = ("2", "1", "0", "3", "1-3", "*", "*/2", "22-2", "0,2", "23-4/2", "2-3", "1,2,3")
    return draw.choice(night) if draw.random() < 0.6 else _list(draw, 0, 23)


def _day(draw: random.Random) -> str:
    if draw.random() < 0.7:
        return "*"
    special = ("L", "1,L", f"{draw.randint(1, 28)}W", "*/2", "1-31", "28-3")
    return draw.choice(special) if draw.random() < 0.4 else _list(draw, 1, 31)


def _month(draw: random.Random) -> str:
    if draw.random() < 0.8:
        return "*"
    return (
        draw.choice(("MAR-NOV", "OCT-APR", "OCT-APR/2", "MAR,APR,SEP,OCT,NOV"))
        if draw.random() < 0.5
        else _list(draw, 1, 12)
    )


def _weekday(draw: random.Random) -> str:
    if draw.random() < 0.7:
        return "*"
    special = ("SUN", "FRI-MON", "SUN#2", "L0", "L5", "1,L7", "7", "5-7", "0-7", "1#1,0#5", "*/2", "SAT-MON/2")
    return draw.choice(special) if draw.random() < 0.6 else _list(draw, 0, 7)


def _list(draw: random.Random, low: int, high: int) -> str:
    tokens = [_numbers(draw, low, high) for _ in range(1 if draw.random() < 0.8 else 2)]
    return tokens[0] if "*" in tokens else ",".join(tokens)
