"""Who may look at the dashboard and act on it: sessions, scopes, forms of other sites; and the stream."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import psycopg
import pytest
from prometheus_client import REGISTRY

from ringcron.api_keys import KeyText, Scope
from ringcron.clock import SystemClock
from ringcron_api.app import make_app
from ringcron_api.dashboard.keys import STREAM
from ringcron_api.dashboard.routes import PAGES
from ringcron_api.dashboard.session import LIFE_SECONDS
from ringcron_api.server import listen
from tests.support.api import ApiCaller, running_api
from tests.support.browsing import Browser, Form, Page, browsing
from tests.support.jobs import add_job
from tests.support.keys import Keys, bearer, keys_of
from tests.support.waiting import until

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def keys(database_url: str) -> AsyncIterator[Keys]:
    async with keys_of(database_url) as keys:
        yield keys


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def log_in(browser: Browser, key: KeyText, to: str = "/dashboard") -> Page:
    page = await browser.get(to)
    assert page.path.startswith("/dashboard/login")
    return await browser.submit(page.form("/login"), key=f" {key.reveal()} ")


async def test_a_key_becomes_a_session_and_stands_nowhere(
    api: ApiCaller, keys: Keys, connection: Connection, capfd: pytest.CaptureFixture[str]
) -> None:
    key = await keys.add(Scope.WRITE, name="billing")
    job_id = await add_job(connection, due_in=3600)
    async with browsing(api.url) as browser:
        page = await log_in(browser, key, f"/dashboard/jobs/{job_id}")
        assert page.path == f"/dashboard/jobs/{job_id}"
        assert "billing · write" in page.text
        (cookie,) = [morsel for morsel in browser.session.cookie_jar if morsel.key == "ringcron_session"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/dashboard")
        assert int(cookie["max-age"]) == LIFE_SECONDS
        assert key.secret not in cookie.value
        done = await browser.submit(page.form("/pause"), reason="a test")
        assert "Paused." in done.text
        entry = (await api.call("GET", f"/jobs/{job_id}/audit", headers=bearer(key))).body[0]
        assert (entry["keyName"], entry["detail"]) == ("billing", {"reason": "a test", "via": "dashboard"})
        # The cookie opens pages and nothing else.
        assert (await api.call("GET", "/jobs", headers={"Cookie": f"ringcron_session={cookie.value}"})).status == 401
        out = await browser.submit(page.form("/logout"))
        assert out.path == "/dashboard/login"
        assert (await browser.get("/dashboard")).path == "/dashboard/login?next=/dashboard"
    assert key.secret not in "".join(capfd.readouterr())


async def test_without_a_session_nothing_is_shown(api: ApiCaller, keys: Keys) -> None:
    await keys.add(Scope.READ)
    async with browsing(api.url) as browser:
        for one in PAGES:
            path = one.path.replace("{jobId}", "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e").replace("{act}", "cancel")
            path = path.replace("{runId}", "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e.1").replace("{name}", "dashboard.css")
            if one.method == "GET":
                page = await browser.get(path, Accept="text/html")
                assert page.path.startswith("/dashboard/login") is ("static" not in path), path
            elif path != "/dashboard/login":
                page = await browser.submit(Form(path, "post"), reason="x")
                assert page.path.startswith("/dashboard/login"), path
    assert {one.path for one in PAGES if one.open} == {"/", "/dashboard/login", "/dashboard/static/{name}"}
    assert all(one.page for one in PAGES)


async def test_a_wrong_key_opens_nothing_and_nobody_is_sent_elsewhere(api: ApiCaller, keys: Keys) -> None:
    key = await keys.add(Scope.READ)
    async with browsing(api.url) as browser:
        login = (await browser.get("/dashboard")).form("/login")
        for wrong in ("", "x", KeyText(id=key.id, secret=KeyText.draw().secret).reveal()):
            page = await browser.submit(login, key=wrong)
            assert (page.status, "no key that is live here" in page.text) == (401, True)
        other_site = await browser.submit(login, key=key.reveal(), headers={"Origin": "http://evil.example"})
        assert other_site.status == 403
        for elsewhere in (
            "http://evil.example/",
            "//evil.example",
            "/dashboard\\@evil.example",
            "/docs",
            "/dashboard/login",
        ):
            page = await browser.submit(login, key=key.reveal(), next=elsewhere)
            assert page.path == "/dashboard"


async def test_a_session_ends_with_its_key_and_with_its_time(
    api: ApiCaller, keys: Keys, connection: Connection
) -> None:
    kept, revoked = await keys.add(Scope.READ), await keys.add(Scope.READ)
    async with browsing(api.url) as browser:
        await log_in(browser, revoked)
        await keys.revoke(revoked)

        async def is_out() -> bool:
            return (await browser.get("/dashboard")).path.startswith("/dashboard/login")

        await until(is_out, seconds=20)
        await log_in(browser, kept)
        (cookie,) = [morsel for morsel in browser.session.cookie_jar if morsel.key == "ringcron_session"]
        key_id, expires, nonce, mac = cookie.value.split(".")
    other = await keys.add(Scope.ADMIN)
    forged = (
        f"{key_id}.{int(expires) + 60}.{nonce}.{mac}",
        f"{other.id}.{expires}.{nonce}.{mac}",
        f"{key_id}.{int(expires) - LIFE_SECONDS - 60}.{nonce}.{mac}",
        f"{key_id}.{expires}.{nonce}.{'0' * 64}",
    )
    for text, shown in ((cookie.value, True), *((text, False) for text in forged)):
        async with browsing(api.url) as browser:
            page = await browser.get("/dashboard", Cookie=f"ringcron_session={text}")
            assert (page.path == "/dashboard") is shown, text


async def test_forms_of_other_sites_and_sessions_are_refused(
    api: ApiCaller, keys: Keys, connection: Connection
) -> None:
    job_id = await add_job(connection, due_in=3600)
    path = f"/dashboard/jobs/{job_id}"
    async with browsing(api.url) as browser:
        form = (await browser.get(path)).form("/cancel")  # no key exists yet: everybody is let in
        refused: tuple[dict[str, str], ...] = (
            {},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Referer": "http://evil.example/dashboard"},
            {"Origin": api.url.replace("127.0.0.1", "localhost")},
            {"Origin": api.url, "Sec-Fetch-Site": "cross-site"},
            {"Origin": api.url, "Sec-Fetch-Site": "same-site"},
        )
        for headers in refused:
            assert (await browser.submit(form, headers=headers, reason="x")).status == 403, headers
        async with browsing(api.url) as another:
            foreign = (await another.get(path)).form("/cancel").fields["csrf"]
        assert (await browser.submit(form, csrf=foreign, reason="x")).status == 403
        assert (await browser.submit(form, csrf="", reason="x")).status == 403
        del form.fields["csrf"]
        assert (await browser.submit(form, reason="x")).status == 403
    assert (await api.get(f"/jobs/{job_id}"))["state"] == "due"


async def test_without_keys_only_this_machine_s_names_are_answered(api: ApiCaller, keys: Keys) -> None:
    port = api.url.rpartition(":")[2]
    async with browsing(api.url) as browser:
        for host, status in (("evil.example", 403), (f"evil.example:{port}", 403), ("127.0.0.1.evil.example", 403)):
            page = await browser.get("/dashboard", Host=host)
            assert (page.status, "call 127.0.0.1" in page.text) == (status, True)
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]"):
            assert (await browser.get("/dashboard", Host=host)).status == 200
        key = await keys.add(Scope.READ)
        await until(lambda: _needs_key(browser), seconds=20)
        await log_in(browser, key)
        assert (await browser.get("/dashboard", Host="ringcron.example")).status == 200


async def test_without_keys_the_json_api_is_called_by_our_names_and_from_our_pages(
    database_url: str, keys: Keys
) -> None:
    async with running_api(database_url, allowed_hosts=("sched.example",)) as api:
        job_id = (await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"}))["jobId"]
        program, page = {"Host": "evil.example"}, {"Origin": "http://evil.example"}
        stranger = {**program, "Accept-Language": "en"}
        for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("DELETE", f"/jobs/{job_id}"), ("GET", "/workers")):
            answer = await api.call(method, path, headers=stranger)
            assert (answer.status, answer["code"]) == (403, "host-not-allowed")
            assert "RINGCRON_ALLOWED_HOSTS" in answer["detail"]
        for method, path in (("POST", f"/jobs/{job_id}/trigger"), ("DELETE", f"/jobs/{job_id}")):
            answer = await api.call(method, path, headers=page)
            assert (answer.status, answer["code"]) == (403, "origin-not-allowed")
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await api.call("GET", path, headers=stranger)).status == 200
        assert (await api.call("GET", f"/jobs/{job_id}", headers=program)).status == 200
        assert (await api.call("GET", f"/jobs/{job_id}", headers={"Host": "sched.example", **page})).status == 200
        own = {"Origin": api.url}
        assert (await api.call("POST", f"/jobs/{job_id}/trigger", headers=own)).status == 202
        key = {"Authorization": f"Bearer {(await keys.add(Scope.WRITE)).reveal()}"}

        async def lets_in() -> bool:
            return (await api.call("POST", f"/jobs/{job_id}/trigger", headers={**stranger, **page, **key})).status < 300

        await until(lets_in, seconds=20)


async def _needs_key(browser: Browser) -> bool:
    return (await browser.get("/dashboard")).path.startswith("/dashboard/login")


async def test_who_may_only_read_sees_dead_buttons(api: ApiCaller, keys: Keys, connection: Connection) -> None:
    job_id = await add_job(connection, due_in=3600)
    dead = await add_job(connection)
    await connection.execute("update jobs set state = 'dead', next_run_at = '9500-01-01Z' where id = %s", (dead,))
    reader, writer = await keys.add(Scope.READ), await keys.add(Scope.WRITE)
    async with browsing(api.url) as browser:
        page = await log_in(browser, reader, f"/dashboard/jobs/{job_id}")
        acts = [form for form in page.forms if "/jobs/" in form.action]
        assert [form.buttons for form in acts] == [[False]] * 3
        assert "This key needs the scope write." in page.text
        token = page.form("/logout").fields["csrf"]
        refused = await browser.submit(acts[0], csrf=token, reason="x")
        assert (refused.status, "this call needs the scope write" in refused.text) == (403, True)
    async with browsing(api.url) as browser:
        page = await log_in(browser, writer, f"/dashboard/jobs/{job_id}")
        assert [form.buttons for form in page.forms if "/jobs/" in form.action] == [[True]] * 3
        groups = await browser.get("/dashboard/dead")
        group = await browser.get(next(link for link in groups.links if "/group?" in link))
        assert group.form("/redrive").buttons == [False]
        many = await browser.submit(
            group.form("/redrive"), csrf=page.form("/logout").fields["csrf"], reason="x", confirm="1"
        )
        assert many.status == 403
    assert (await api.call("GET", f"/jobs/{dead}", headers=bearer(writer)))["state"] == "dead"


async def test_a_link_from_another_site_is_followed_once_more(api: ApiCaller, keys: Keys) -> None:
    """The cookie is SameSite=Strict: the first request comes without it."""
    await keys.add(Scope.READ)
    async with browsing(api.url) as browser:
        page = await browser.get("/dashboard/shards", **{"Sec-Fetch-Site": "cross-site"})
        told = [told["content"] for tag, told in page.tags if tag == "meta" and "http-equiv" in told]
        assert (page.path, told) == ("/dashboard/shards", ["0;url=/dashboard/shards"])


class _Heard:
    """The events of one stream, read as they come."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._text = b""

    async def next(self, name: str) -> Any:
        while True:
            while b"\n\n" not in self._text:
                part = await asyncio.wait_for(self._answer.content.readany(), 20)
                assert part, "the stream has ended"
                self._text += part
            event, _, self._text = self._text.partition(b"\n\n")
            lines = dict(line.split(b": ", 1) for line in event.splitlines())
            if lines[b"event"].decode() == name:
                return orjson.loads(lines[b"data"])


async def test_all_streams_have_one_producer(database_url: str, connection: Connection) -> None:
    def timed() -> float:
        labels = {"route": "/dashboard/events"}
        return REGISTRY.get_sample_value("ringcron_http_request_duration_seconds_count", labels) or 0

    before = timed()
    app = make_app(database_url=database_url, pool_size=8, clock=SystemClock(), may_be_open=True)
    runner, url = await listen(app, "127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            answers = [await session.get(f"{url}/dashboard/events?view=shards") for _ in range(20)]
            heard = [_Heard(answer) for answer in answers]
            firsts = [await one.next("picture") for one in heard]
            assert REGISTRY.get_sample_value("ringcron_event_streams") == 20
            assert all("heat" in first["elements"] for first in firsts)
            producers = [task for task in asyncio.all_tasks() if "Stream._produce" in repr(task.get_coro())]
            assert len(producers) == 1
            while "heat" in (await heard[0].next("picture"))["elements"]:
                pass  # it was slow and got the whole again; then only what changed, which is nothing
            await add_job(connection, due_in=-50, slot=7)
            changed = {}
            while "slots" not in changed:
                changed = (await heard[0].next("picture"))["elements"]
            assert "swatch l4" in changed["slots"]
            for answer in answers:
                answer.close()
            async with session.get(f"{url}/dashboard/events?view=nothing") as refused:
                assert refused.status == 404
            await until(lambda: app[STREAM]._producer is not None and app[STREAM]._producer.done(), seconds=20)
            await until(lambda: REGISTRY.get_sample_value("ringcron_event_streams") == 0, seconds=20)
            assert timed() == before + 1  # the one that was refused
            last = await session.get(f"{url}/dashboard/events?view=overview")
            await _Heard(last).next("picture")
            ending = asyncio.create_task(runner.cleanup())  # an API that is told to stop waits for no stream
            assert (await asyncio.wait_for(last.content.read(), 20)) is not None
            await ending
    finally:
        await runner.cleanup()


async def test_the_stream_is_packed_and_ends_with_the_session(api: ApiCaller, keys: Keys) -> None:
    key, _ = await keys.add(Scope.READ), await keys.add(Scope.READ)  # with the last key nobody needs one any more
    async with browsing(api.url) as browser:
        await log_in(browser, key)
        path, headers = f"{api.url}/dashboard/events?view=overview", {"Accept-Encoding": "gzip"}
        jar = browser.session.cookie_jar
        async with (
            aiohttp.ClientSession(cookie_jar=jar, auto_decompress=False) as session,
            session.get(path, headers=headers) as answer,
        ):
            assert answer.headers["Content-Encoding"] == "gzip"
            unpacker = zlib.decompressobj(wbits=31)
            text = b""
            while b"event: picture" not in text:
                text += unpacker.decompress(await asyncio.wait_for(answer.content.readany(), 20))
            assert b"No worker is running" in text
            await keys.revoke(key)
            while part := await asyncio.wait_for(answer.content.readany(), 20):
                unpacker.decompress(part)
