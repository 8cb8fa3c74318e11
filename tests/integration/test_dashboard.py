"""The pages of the dashboard over HTTP, without a script: the figures, the escaping, the filters, what acts do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import PARKED, Arc, Slice
from ringcron.store.worker import WorkerStore
from tests.support.api import ApiCaller, running_api
from tests.support.browsing import Browser, Page, browsing
from tests.support.jobs import add_job, row_of
from tests.support.values import report_of

Connection = psycopg.AsyncConnection[Any]
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
PAGES = ("", "/shards", "/spikes", "/jobs", "/dead", "/alerts", "/workers")


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def browser(api: ApiCaller) -> AsyncIterator[Browser]:
    async with browsing(api.url) as browser:
        yield browser


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def report(url: str, worker_id: str, *arcs: tuple[int, int], **columns: Any) -> str | None:
    clock = SystemClock()
    store = WorkerStore(
        url,
        worker_id=worker_id,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    held = Slice(handlers=("noop",), arcs=tuple(Arc(lo=lo, hi=hi) for lo, hi in arcs))
    try:
        asked_by = await store.report_worker(
            report_of(worker_id, **{"handlers": ("noop",), "slices": (held,), **columns})
        )
    finally:
        await store.close()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        # It does not age, however long the test takes.
        await connection.execute(
            "update workers set seen_at = now() + interval '1 h' where worker_id = %s", (worker_id,)
        )
    return asked_by


async def dead_job(connection: Connection, reason: str, **columns: Any) -> str:
    job_id = await add_job(connection, **columns)
    await connection.execute(
        "update jobs set state = 'dead', next_run_at = %s, dead_reason = %s, attempt = 5 where id = %s",
        (PARKED, reason, job_id),
    )
    return str(job_id)


def tiles(page: Page) -> dict[str, str]:
    found = re.findall(r"<b[^>]*>([^<]+)</b><span>([^<]+)</span>", page.html)
    return {name: value for value, name in found}


async def test_every_page_is_whole_and_quiet_where_nothing_is(browser: Browser) -> None:
    for path in PAGES:
        page = await browser.get(f"/dashboard{path}")
        assert page.status == 200
        assert "script-src 'self'; style-src 'self'" in page.headers["Content-Security-Policy"]
        assert "unsafe" not in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
        # The policy would refuse them: no style and no script stands in the HTML.
        assert not [tag for tag, told in page.tags if tag == "style" or "style" in told or told.get("onclick")]
        assert [told["src"].partition("?")[0] for tag, told in page.tags if tag == "script"] == [
            "/dashboard/static/dashboard.js"
        ]
        assert "No worker is running; nothing is due." in page.text
    for _, told in page.tags:
        if told.get("href", "").startswith("/dashboard/static") or told.get("src"):
            asset = await browser.get(told.get("href") or told["src"])
            assert (asset.status, "immutable" in asset.headers["Cache-Control"]) == (200, True)


async def test_a_browser_is_led_to_the_dashboard_and_a_program_is_not(browser: Browser, api: ApiCaller) -> None:
    page = await browser.get("/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (page.status, page.path) == (200, "/dashboard")
    for accept in ("*/*", "application/json"):
        answer = await api.call("GET", "/", headers={"Accept": accept})
        assert (answer.status, answer.body["code"]) == (404, "not-found")


async def test_the_overview_says_what_does_not_run_and_why(
    browser: Browser, connection: Connection, database_url: str
) -> None:
    await report(database_url, "a.1", (0, 99), epoch=3, running=2)
    await report(database_url, "b.1", (200, 4095), epoch=3)
    await report(database_url, "c.1", (100, 199), epoch=3, report_seconds=0.1)
    await connection.execute("update workers set seen_at = now() - interval '2 seconds' where worker_id = 'c.1'")
    # a.0 died and came back as a.1; of d.1's name there is none, and others have taken over some of its slots.
    await report(database_url, "a.0", (0, 99))
    await report(database_url, "d.1", (90, 110))
    await connection.execute(
        "update workers set seen_at = now() - interval '2 minutes' where worker_id in ('a.0', 'd.1')"
    )
    await add_job(connection, due_in=-125, slot=150)
    await add_job(connection, due_in=-1, slot=50)
    await add_job(connection, due_in=30, slot=50)
    page = await browser.get("/dashboard")
    assert "The oldest due job waits 2 min" in page.text
    assert "slots 100–199 have no owner since" in page.text
    assert re.search("c.1 (went silent|stopped reporting)", page.text)  # the latter after 15 s
    shown = tiles(page)
    assert (shown["due now"], shown["due next minute"], shown["workers"], shown["dead"]) == ("2", "1", "2 / 4", "0")
    assert "no owner" in page.text
    rows = [told["id"] for tag, told in page.tags if tag == "tr" and "id" in told]
    assert rows[:3] == ["r-nobody", "r-a.1", "r-b.1"]
    shards = await browser.get("/dashboard/shards")
    assert re.search(r"150 no owner 2 min (\d+ s )?1", shards.text)
    workers = await browser.get("/dashboard/workers")
    assert re.search("c.1 (silent since|gone last report)", workers.text)
    assert re.search("d.1 gone last report [0-9:]+ UTC; of what it held, slots 100–110 have no owner", workers.text)
    assert "a.0" not in workers.text


async def test_a_handler_that_nobody_has_is_named(browser: Browser, connection: Connection, database_url: str) -> None:
    await report(database_url, "a.1", (0, 4095))
    await add_job(connection, due_in=-75, handler="billing")
    page = await browser.get("/dashboard")
    assert "1 due job of the handler billing waits, the oldest for 1 min" in page.text
    assert "no worker has that handler" in page.text
    shown = tiles(page)
    assert (shown["due now"], shown["oldest wait"][:5]) == ("1", "1 min")


async def test_what_callers_wrote_is_shown_as_they_wrote_it(
    browser: Browser, connection: Connection, api: ApiCaller
) -> None:
    body = {
        "runAt": "2100-01-01T00:00:00Z",
        "name": HOSTILE,
        "key": HOSTILE,
        "tags": [HOSTILE[:60]],
        "payload": {HOSTILE: [HOSTILE]},
    }
    created = await api.post("/jobs", body)
    dead = await dead_job(connection, HOSTILE, payload=HOSTILE)
    await connection.execute("update jobs set name = %s where id = %s", (HOSTILE, dead))
    await connection.execute(
        "insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, started_at, "
        "finished_at, outcome, error, result) values (%s, 1, now(), 1, now(), 'schedule', %s, now(), now(), 'failed', "
        "%s, to_jsonb(%s::text))",
        (created["jobId"], HOSTILE, HOSTILE, HOSTILE),
    )
    group = next(link for link in (await browser.get("/dashboard/dead")).links if "/group?" in link)
    paths = [
        "/dashboard/jobs",
        f"/dashboard/jobs/{created['jobId']}",
        f"/dashboard/jobs/{dead}",
        "/dashboard/dead",
        group,
    ]
    paths += [f"/dashboard/jobs?{urlencode({name: HOSTILE + 'x'})}" for name in ("q", "handler")]
    paths.append(f"/dashboard/{quote(HOSTILE)}")
    for path in paths:
        page = await browser.get(path)
        assert page.status < 500
        assert "alert(1)" in page.text or "handler=" in path or page.status == 404
        names = {tag for tag, _ in page.tags}
        assert "img" not in names
        assert len([tag for tag in page.tags if tag[0] == "script"]) == 1
        assert not [told for _, told in page.tags if any(name.startswith("on") for name in told)]


async def test_jobs_are_found_and_paged(browser: Browser, api: ApiCaller) -> None:
    for number in range(53):
        body = {"runAt": "2100-01-01T00:00:00Z", "tags": ["t"], "key": f"k-{number}", "name": f"n-{number}"}
        created = await api.post("/jobs", body)
    page = await browser.get("/dashboard/jobs?tag=t")
    assert (page.text.count("n-"), "Further" in page.text) == (50, True)
    further = next(link for link in page.links if "cursor=" in link)
    assert (await browser.get(further)).text.count("n-") == 3
    for searched in ("k-52", created["jobId"], f"{created['jobId']}.7"):
        found = await browser.get(f"/dashboard/jobs?q={searched}")
        assert found.path == f"/dashboard/jobs/{created['jobId']}"
    assert (await browser.get("/dashboard/jobs?q=n-7")).text.count("n-7") >= 1
    assert "No job has the id, the key or the name “nothing”" in (await browser.get("/dashboard/jobs?q=nothing")).text
    assert "No job fits" in (await browser.get("/dashboard/jobs?state=dead")).text
    for refused in ("state=x", "cursor=x"):
        page = await browser.get(f"/dashboard/jobs?{refused}")
        assert (page.status, page.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
    missing = await browser.get("/dashboard/jobs/019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e")
    assert (missing.status, "There is no such thing" in missing.text) == (404, True)


async def test_the_page_of_a_job(browser: Browser, api: ApiCaller, database_url: str) -> None:
    await report(database_url, "a.1", (0, 4095), handlers=("default",))
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Madrid", "startAt": "2027-03-26T00:00:00Z"}
    job = await api.post("/jobs", {"schedule": schedule, "payload": {"report": "daily"}, "name": "report"})
    page = await browser.get(f"/dashboard/jobs/{job['jobId']}")
    assert "It is not due yet: its next run is at 2027-03-26T01:30:00Z" in page.text
    assert "Fri 2027-03-26 02:30:00 CET 2027-03-26 01:30:00" in page.text
    assert "Sun 2027-03-28 03:00:00 CEST 2027-03-28 01:00:00" in page.text  # the clock skips 02:30
    assert "its local time is skipped by the clock" in page.text
    assert page.text.count("02:30:00 CEST") == 7
    assert '"report": "daily"' in page.text


async def test_acts_say_who_and_why(browser: Browser, api: ApiCaller, connection: Connection) -> None:
    job = await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"})
    path = f"/dashboard/jobs/{job['jobId']}"
    page = await browser.get(path)
    assert [form.action.rpartition("/")[2] for form in page.forms if path in form.action] == [
        "trigger",
        "pause",
        "cancel",
    ]
    refused = await browser.submit(page.form("/pause"), reason="  ")
    assert (refused.status, "say why" in refused.text) == (400, True)
    page = await browser.submit(page.form("/pause"), reason="the target is away")
    assert "Paused." in page.text
    assert (await api.get(f"/jobs/{job['jobId']}"))["pauseReason"] == "the target is away"
    page = await browser.submit(page.form("/resume"), reason="it is back")
    page = await browser.submit(page.form("/trigger"), reason="now please")
    page = await browser.submit(page.form("/cancel"), reason="no more")
    assert "Cancelled: nothing will start any more." in page.text
    entries = (await api.get(f"/jobs/{job['jobId']}/audit")).body
    assert [(entry["action"], entry["detail"]["reason"]) for entry in entries] == [
        ("cancel", "no more"),
        ("trigger", "now please"),
        ("resume", "it is back"),
        ("pause", "the target is away"),
    ]
    assert "the target is away" in page.text


async def test_a_cancel_that_comes_too_late_says_so(browser: Browser, api: ApiCaller, connection: Connection) -> None:
    job = await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"})
    page = await browser.get(f"/dashboard/jobs/{job['jobId']}")
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_generation = 1, attempt = 1, "
        "lease_until = now() + interval '60 s', claimed_at = now(), next_run_at = now() where id = %s",
        (job["jobId"],),
    )
    late = await browser.submit(page.form("/cancel"), reason="stop")
    assert (late.status, "A worker has already claimed the job" in late.text) == (409, True)
    assert f"/dashboard/jobs/{job['jobId']}" in late.links
    page = await browser.get(f"/dashboard/jobs/{job['jobId']}")
    asked = await browser.submit(page.form(".1/cancel"), reason="stop")
    assert "Its worker was asked to stop the run." in asked.text


async def test_dead_jobs_of_one_fault_are_one_group(browser: Browser, api: ApiCaller, connection: Connection) -> None:
    ids = [await dead_job(connection, f"failed at attempt 5 of 5: order {n} has no 'x{n}'") for n in range(3)]
    other = await dead_job(connection, "timed out at attempt 5 of 5: it ran for too long")
    page = await browser.get("/dashboard/dead")
    assert "4 jobs" in page.text
    groups = [link for link in page.links if "/group?" in link and "#" not in link]
    assert len(set(groups)) == 2
    group = await browser.get(groups[0])
    assert "3 dead jobs of noop" in group.text
    wrong = await browser.submit(group.form("/redrive"), reason="mended", confirm="4")
    assert (wrong.status, "nothing was done" in wrong.text) == (400, True)
    done = await browser.submit(group.form("/redrive"), reason="mended", confirm="3", perSecond="")
    assert "3 jobs redriven." in done.text
    for job_id in ids:
        row = await row_of(connection, job_id)  # type: ignore[arg-type]
        assert (row["state"], row["cause"]) == ("due", "redrive")
    group = await browser.get(next(link for link in done.links if "/group?" in link))
    done = await browser.submit(group.form("/delete"), reason="never mind", confirm="1")
    assert "1 job deleted." in done.text
    assert (await api.get(f"/jobs/{other}"))["state"] == "cancelled"
    entries = (await api.get(f"/jobs/{other}/audit")).body
    assert (entries[0]["action"], entries[0]["detail"]["reason"]) == ("cancel", "never mind")
    cursor = await connection.execute("select detail from audit_log where action = 'redrive'")
    ((detail,),) = await cursor.fetchall()
    assert (detail["reason"], detail["count"], detail["via"]) == ("mended", 3, "dashboard")
    assert "No job is dead." in (await browser.get("/dashboard/dead")).text


async def test_dead_jobs_that_are_ticked_are_acted_on_together(
    browser: Browser, api: ApiCaller, connection: Connection
) -> None:
    ids = [str(await dead_job(connection, "failed at attempt 5 of 5")) for _ in range(4)]
    page = await browser.get(next(link for link in (await browser.get("/dashboard/dead")).links if "/group?" in link))
    ticked = [told["value"] for name, told in page.tags if name == "input" and told.get("type") == "checkbox"]
    assert (sorted(ticked), page.form("/selected").method) == (sorted(ids), "get")
    assert (await browser.get("/dashboard/dead/selected")).status == 400
    chosen = await browser.get(f"/dashboard/dead/selected?jobId={ids[0]}&jobId={ids[1]}&jobId={ids[0]}&jobId={ids[3]}")
    assert "3 dead jobs chosen" in chosen.text
    form = chosen.form("/selected/redrive")
    for wrong in ({"confirm": "2"}, {"confirm": "3", "csrf": ""}, {"confirm": "3", "reason": ""}, {"jobs": ids[0]}):
        refused = await browser.submit(form, **{"reason": "mended", "confirm": "3", **wrong})
        assert refused.status in (400, 403)
    await api.call("DELETE", f"/jobs/{ids[3]}")  # meanwhile, by somebody else
    done = await browser.submit(form, reason="mended", confirm="3")
    assert "2 jobs redriven." in done.text
    states = [(await api.get(f"/jobs/{job_id}"))["state"] for job_id in ids]
    assert states == ["due", "due", "dead", "cancelled"]
    (entry,) = (await api.get(f"/jobs/{ids[0]}/audit")).body
    assert (entry["action"], entry["detail"]["reason"]) == ("redrive", "mended")
    chosen = await browser.get(f"/dashboard/dead/selected?jobId={ids[0]}&jobId={ids[2]}")
    assert "1 dead job chosen" in chosen.text
    assert "1 other chosen before: not dead any more" in chosen.text
    done = await browser.submit(chosen.form("/selected/delete"), reason="never mind", confirm="1")
    assert "1 job deleted." in done.text
    # What was chosen while it was dead and is due again is not deleted.
    late = await browser.submit(chosen.form("/selected/delete"), reason="again", confirm="1", jobs=ids[0])
    assert "0 jobs deleted." in late.text
    assert (await api.get(f"/jobs/{ids[0]}"))["state"] == "due"


async def test_a_worker_is_asked_to_drain(browser: Browser, connection: Connection, database_url: str) -> None:
    await report(database_url, "a.1", (0, 4095))
    page = await browser.get("/dashboard/workers")
    asked = await browser.submit(page.form("/drain"), worker="a.1", reason="a new kernel")
    assert "Asked to drain" in asked.text
    assert await report(database_url, "a.1", (0, 4095)) == "anonymous"
    nobody = await browser.submit(page.form("/drain"), worker="z.9", reason="a new kernel")
    assert nobody.status == 404
    cursor = await connection.execute("select action, job_id, detail from audit_log")
    assert await cursor.fetchall() == [("drain", None, {"reason": "a new kernel", "via": "dashboard", "worker": "a.1"})]


async def test_without_the_database_the_page_says_so() -> None:
    async with running_api("postgresql://nobody@127.0.0.1:9/none") as api, browsing(api.url) as browser:
        page = await browser.get("/dashboard")
        assert page.status == 503
        assert "The database cannot be reached: nothing starts, and nothing is lost." in page.text
        assert page.headers["Refresh"] == "5"
