"""What the dashboard costs at size: python -m tests.browser.measure [--jobs 1000000] [--workers 200] [--streams 20]

A database of its own with that many jobs (generate_series) and workers that report as real ones do, two API processes,
and that many streams. Prints the statements a second that the database saw (pg_stat_statements), their times, the bytes
of pages and events, and, where there is a Chromium, the time to the first paint. The figures depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
from psycopg.types.json import Jsonb

from ringcron_sql.migrate import migrate
from tests.browser.conftest import ARGUMENTS, PHONE, WIDE, chromium
from tests.support.backends import choose
from tests.support.days import carve_days
from tests.support.programs import Api, Programs
from tests.support.servers import own_postgres_server

HANDLERS = ["charge", "report", "webhook"]
PAGES = ("", "/shards", "/spikes", "/jobs", "/dead", "/alerts", "/workers")
WATCHED_SECONDS = 30

_FILL = """
insert into jobs (id, slot, next_run_at, state, handler, scheduled_for, decided_until, run_at, payload, created_at,
                  updated_at)
select gen_random_uuid(), n %% 4096, at, 'due', (array['charge', 'report', 'webhook'])[1 + n %% 3], at,
       at - interval '1 second', at, '{"order": 4711}', now(), now()
from (select n, now() + make_interval(secs => case when n %% 1000 < 2 then -random() * 20
                                                   when n %% 100 = 7 then 900
                                                   else random() * 86400 * 6 + 30 end) as at
      from generate_series(1, %s) as n) as due
"""


async def main(jobs: int, workers: int, streams: int) -> None:
    choice = choose({**os.environ, "RINGCRON_TEST_BACKEND": "embedded"}, lambda: False)
    settings = {"shared_preload_libraries": "pg_stat_statements", "shared_buffers": "512MB"}
    with own_postgres_server(choice, **settings) as server, tempfile.TemporaryDirectory() as folder:
        await migrate(server.url)
        async with await psycopg.AsyncConnection.connect(server.url, autocommit=True) as connection:
            await connection.execute("create extension pg_stat_statements")
            (now,) = await (await connection.execute("select now()")).fetchone() or ()
            for table in ("jobs", "runs"):
                await carve_days(connection, table, now, before=2, after=8)
            began = time.perf_counter()
            await connection.execute(_FILL, (jobs,))
            await connection.execute("vacuum analyze jobs")
            print(f"{jobs:,} jobs in {time.perf_counter() - began:.0f} s")
            programs = Programs(Path(folder))
            reporting = asyncio.create_task(report_for_ever(server.url, workers))
            try:
                apis = [programs.api(server.url) for _ in range(2)]
                await watch(connection, apis, streams)
                weigh(apis[0])
                paint(apis[0])
            finally:
                reporting.cancel()
                programs.close()


async def report_for_ever(url: str, workers: int) -> None:
    """As workers do: each every five seconds, with arcs of its own."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while True:
            for number in range(workers):
                lo, hi = number * 4096 // workers, (number + 1) * 4096 // workers - 1
                await connection.execute(
                    "insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, "
                    "draining, slices, report_seconds, seen_at) "
                    "values (%s, %s, 10, %s, %s, '0.1.0', '2026.6', 7, false, %s, 5, now()) "
                    "on conflict (worker_id) do update set seen_at = now(), running = excluded.running",
                    (f"worker-{number}.{number:08x}", f"worker-{number}", number % 10, HANDLERS,
                     Jsonb([{"handlers": HANDLERS, "arcs": [[lo, hi]]}])),
                )  # fmt: skip
                await asyncio.sleep(5 / workers)


async def watch(connection: psycopg.AsyncConnection[Any], apis: list[Api], streams: int) -> None:
    """Let the streams run for a while, and say what the database saw meanwhile."""
    views = ("overview", "shards", "spikes", "workers")
    sizes: dict[str, list[int]] = {view: [] for view in views}

    async def listen(session: aiohttp.ClientSession, number: int) -> None:
        view = views[number % len(views)]
        url = f"{apis[number % len(apis)].url}/dashboard/events?view={view}"
        async with session.get(url, headers={"Accept-Encoding": "gzip"}, timeout=aiohttp.ClientTimeout()) as answer:
            while part := await answer.content.readany():
                sizes[view].append(len(part))

    async with aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0)) as session:
        listening = [asyncio.create_task(listen(session, number)) for number in range(streams)]
        await asyncio.sleep(5)
        for sent in sizes.values():
            sent.clear()
        await connection.execute("select pg_stat_statements_reset()")
        began = time.perf_counter()
        await asyncio.sleep(WATCHED_SECONDS)
        seconds = time.perf_counter() - began
        cursor = await connection.execute(
            "select calls, mean_exec_time, query from pg_stat_statements "
            "where query !~ 'pg_stat_statements|insert into workers'"
        )
        rows = await cursor.fetchall()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    print(f"{streams} streams on {len(apis)} API processes, for {seconds:.0f} s:")
    for calls, mean, text in sorted(rows, key=lambda row: -row[0] * row[1])[:12]:
        print(f"  {calls / seconds:6.2f} a second, {mean:8.2f} ms each: {' '.join(text.split())[:100]}")
    busy = sum(calls * mean for calls, mean, _ in rows) / seconds / 10
    print(f"  all statements: {sum(row[0] for row in rows) / seconds:.1f} a second, {busy:.1f} % of a core")
    lag = sum(calls for calls, _, text in rows if "overdue as" in text)
    print(f"  lag queries: {lag / seconds:.2f} a second")
    for view, sent in sizes.items():
        listeners = len(range(views.index(view), streams, len(views)))
        print(f"  {view}: {sum(sent) / seconds / max(listeners, 1):,.0f} bytes a second and stream, gzip")


def weigh(api: Api) -> None:
    """Bytes and time of each page."""
    for path in (*PAGES, "/static/dashboard.css", "/static/dashboard.js"):
        times = []
        for _ in range(5):
            began = time.perf_counter()
            with urllib.request.urlopen(f"{api.url}/dashboard{path}") as answer:
                body = answer.read()
            times.append(time.perf_counter() - began)
        print(f"  /dashboard{path}: {len(body):,} bytes, {len(gzip.compress(body)):,} gzip, {min(times) * 1000:.0f} ms")


def paint(api: Api) -> None:
    """When the browser first paints, and when the largest of the page stands, without a cache."""
    from playwright.sync_api import sync_playwright

    def measure() -> None:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            for path in PAGES:
                for size in (WIDE, PHONE):
                    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
                    page = context.new_page()
                    page.goto(f"{api.url}/dashboard{path}")
                    page.wait_for_selector("#age.live")
                    told = page.evaluate(
                        "() => new Promise(done => new PerformanceObserver(list => done({largest: "
                        "list.getEntries().at(-1).startTime, "
                        "first: performance.getEntriesByName('first-contentful-paint')[0].startTime}))"
                        ".observe({type: 'largest-contentful-paint', buffered: true}))"
                    )
                    print(f"  /dashboard{path} at {size[0]}:", ", ".join(f"{k} {v:.0f} ms" for k, v in told.items()))
                    context.close()
            browser.close()

    thread = threading.Thread(target=measure)  # its API refuses a thread that has an event loop
    thread.start()
    thread.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--streams", type=int, default=20)
    given = parser.parse_args()
    asyncio.run(main(given.jobs, given.workers, given.streams))
