"""C17, A22: when the rules of a zone change, waiting jobs move with them; nothing runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import tzdata

from ringcron.clock import SystemClock
from ringcron.schedule import parse_schedule, tzdata_version
from ringcron.store.pool import Pool
from ringcron.store.zone_rules import ZoneRules
from ringcron_sql import query
from tests.support.jobs import add_job, database_now, row_of, skips_of
from tests.support.plans import explain

pytestmark = pytest.mark.store

CRON = {"cron": "0 9 * * *", "timezone": "Africa/Cairo"}
LEADER = """
import asyncio, json, sys
from ringcron.clock import SystemClock
from ringcron.store.pool import Pool
from ringcron.store.zone_rules import ZoneRules

async def main():
    pool = Pool(sys.argv[1], application_name="leader", max_size=1)
    moves = await ZoneRules(pool, SystemClock()).step()
    await pool.close()
    print(json.dumps([[str(move.job_id), move.before.isoformat(), move.after.isoformat()] for move in moves]))

asyncio.run(main())
"""


def new_rules(folder: Path) -> Path:
    """A release of tzdata in which Cairo is five hours ahead of UTC all year."""
    real, package = Path(tzdata.__file__).parent, folder / "tzdata"
    (package / "zoneinfo" / "Africa").mkdir(parents=True)
    (package / "__init__.py").write_text('IANA_VERSION = "2099z"\n')
    shutil.copy(real / "zones", package / "zones")
    shutil.copy(real / "zoneinfo" / "Etc" / "GMT-5", package / "zoneinfo" / "Africa" / "Cairo")
    return folder


async def test_a_tick_that_old_rules_chose_moves_and_says_so(database_url: str) -> None:
    """The stored tick is an hour off what today's rules say, as after a change of the zone."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        now = await database_now(connection)
        moved = await add_job(connection, due_in=7200, schedule=CRON, tzdata="2001a")
        retried = await add_job(connection, due_in=7200, schedule=CRON, tzdata="2001a", attempt=1)
        interval = await add_job(connection, due_in=7200, schedule={"every": "PT1H", "anchor": now.isoformat()})
        await connection.execute("update jobs set decided_until = now()")
        before = {job: await row_of(connection, job) for job in (moved, retried, interval)}

        pool = Pool(database_url, application_name="test", max_size=1)
        rules = ZoneRules(pool, SystemClock())
        (move,) = await rules.step()
        assert rules.done
        assert await ZoneRules(pool, SystemClock()).step() == [], "one look per version"
        await pool.close()

        row = await row_of(connection, moved)
        assert (move.job_id, move.before, move.after) == (moved, before[moved]["scheduled_for"], row["scheduled_for"])
        assert row["next_run_at"] == row["scheduled_for"] != before[moved]["scheduled_for"]
        assert now < row["scheduled_for"] <= now + timedelta(days=1)
        assert row["tzdata"] != "2001a"
        assert (await row_of(connection, retried))["next_run_at"] == before[retried]["next_run_at"]
        assert await row_of(connection, interval) == before[interval]
        assert await skips_of(connection, moved) == []


async def test_a_leader_with_new_zone_files_moves_the_ticks_that_the_old_ones_chose(
    database_url: str, tmp_path: Path
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        now = await database_now(connection)
        tick = parse_schedule(CRON).next_after(now)
        assert tick is not None
        ahead = (tick - now).total_seconds()
        moved = await add_job(connection, due_in=ahead, scheduled_for=tick, schedule=CRON, tzdata=tzdata_version())
        stays = await add_job(connection, due_in=7200, schedule={"every": "PT1H", "anchor": "2026-01-01T00:00:00Z"})
        await connection.execute("update jobs set decided_until = now()")

        leader = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", LEADER, database_url,
            env={**os.environ, "PYTHONPATH": str(new_rules(tmp_path))}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await leader.communicate()

        nine = parse_schedule({"cron": "0 4 * * *", "timezone": "UTC"}).next_after(now)  # 09:00 at five hours ahead
        assert nine is not None
        assert nine != tick
        ((job_id, before, after),) = json.loads(said)
        assert (job_id, datetime.fromisoformat(before), datetime.fromisoformat(after)) == (str(moved), tick, nine)
        row = await row_of(connection, moved)
        assert (row["scheduled_for"], row["next_run_at"], row["tzdata"]) == (nine, nine, "2099z")
        assert (await row_of(connection, stays))["tzdata"] is None


async def test_the_look_for_outdated_jobs_walks_the_primary_key(database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        connection_any: psycopg.AsyncConnection[Any] = connection
        await connection.execute("set enable_seqscan = off")
        parameters = {"after": "00000000-0000-0000-0000-000000000000", "tzdata": "x", "limit": 10}
        plan = await explain(connection_any, query("list_outdated_jobs"), parameters)
        assert plan.indexes == {"jobs_pkey"}
