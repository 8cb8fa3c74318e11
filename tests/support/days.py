"""Day partitions for tests of plans, made by hand in an empty database."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any, LiteralString

import psycopg
from psycopg import sql


async def carve_days(
    connection: psycopg.AsyncConnection[Any], table: LiteralString, today: datetime, *, before: int, after: int
) -> None:
    """Replace past and far of the empty `table` by past, days from `before` days ago to `after` days ahead, and far."""
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    edges = [midnight + timedelta(days=n) for n in range(-before, after + 2)]
    parts = [("past", sql.SQL("minvalue"), sql.Literal(edges[0]))]
    parts += [(f"d{start:%Y%m%d}", sql.Literal(start), sql.Literal(end)) for start, end in itertools.pairwise(edges)]
    parts.append(("far", sql.Literal(edges[-1]), sql.SQL("maxvalue")))
    for name in ("past", "far"):
        await connection.execute(sql.SQL("drop table {}").format(sql.Identifier(f"{table}_{name}")))
    for name, lower, upper in parts:
        await connection.execute(
            sql.SQL("create table {} partition of {} for values from ({}) to ({})").format(
                sql.Identifier(f"{table}_{name}"), sql.Identifier(table), lower, upper
            )
        )


def day_names(table: str, *instants: datetime) -> set[str]:
    """The partitions that hold these instants."""
    return {f"{table}_d{instant:%Y%m%d}" for instant in instants}
