"""API keys: who is let in, to what and how often, and what is kept of it; issue 3, point 8."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from ringcron.api_keys import KeyText, Scope
from ringcron.errors import ApiKeyNameTaken, ApiKeyNotFound
from ringcron.local.processes import free_port
from ringcron_api.key_ring import BOUND_SECONDS, NEWS_SECONDS, TOUCH_SECONDS
from ringcron_api.operations import Operation
from ringcron_api.routes import OPERATIONS
from ringcron_sql.migrate import migrate
from tests.support.api import Answer, ApiCaller, running_api
from tests.support.jobs import add_job
from tests.support.keys import Keys, MovableClock, bearer, keys_of
from tests.support.programs import Programs
from tests.support.servers import OwnPostgres
from tests.support.waiting import until, until_sync

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def keys(database_url: str) -> AsyncIterator[Keys]:
    async with keys_of(database_url) as keys:
        yield keys


@pytest.fixture
async def api(database_url: str, clock: MovableClock) -> AsyncIterator[ApiCaller]:
    """On loopback, so that it is open as long as there is no key."""
    async with running_api(database_url, clock=clock) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def listing(api: ApiCaller, key: KeyText | None = None) -> Answer:
    return await api.call("GET", "/jobs", headers={} if key is None else bearer(key))


def path_of(operation: Operation) -> str:
    """A path of an operation at which there is nothing."""
    return operation.path.replace("{jobId}", str(uuid4())).replace("{runId}", f"{uuid4()}.1")


async def test_without_any_key_everybody_is_let_in_and_from_the_first_one_on_nobody_else(
    api: ApiCaller, keys: Keys, clock: MovableClock
) -> None:
    assert (await listing(api)).status == 200
    assert (await listing(api, KeyText.draw())).status == 200  # a caller that has one shows it everywhere
    key = await keys.add(Scope.READ)
    clock.skip(BOUND_SECONDS)
    refused = await listing(api)
    assert (refused.status, refused["code"]) == (401, "unauthorized")
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="ringcron"'
    assert "ringcron key add" in refused["detail"]
    assert (await listing(api, key)).status == 200
    await keys.revoke(key)
    clock.skip(BOUND_SECONDS)
    assert (await listing(api)).status == 200


async def test_where_the_api_may_not_be_open_nobody_is_let_in_without_a_key_but_to_what_is_open(
    database_url: str,
) -> None:
    async with running_api(database_url, may_be_open=False) as api:
        for operation in OPERATIONS:
            called = await api.call(operation.method, path_of(operation))
            assert (called.status == 401) is not operation.open, operation.path
        assert {operation.path for operation in OPERATIONS if operation.open} == {
            "/healthz",
            "/readyz",
            "/openapi.json",
            "/docs",
        }
        async with api.session.head(f"{api.url}/jobs") as answer:
            assert answer.status == 401
        assert (await api.get("/nowhere")).status == 404


async def test_each_call_needs_its_scope_and_any_that_includes_it(api: ApiCaller, keys: Keys) -> None:
    by_scope = {scope: await keys.add(scope) for scope in Scope}
    for operation in OPERATIONS:
        if operation.open:
            continue
        for scope, key in by_scope.items():
            path = path_of(operation)
            answer = await api.call(operation.method, path, headers=bearer(key))
            allowed = scope.includes(operation.needed_scope)
            assert (answer.status == 403) is not allowed, (operation.path, scope)
            assert answer.status != 401
            if not allowed:
                assert (answer["code"], answer["neededScope"]) == ("forbidden", operation.needed_scope)
                assert f'scope="{operation.needed_scope}"' in answer.headers["WWW-Authenticate"]


def test_reading_needs_read_and_everything_else_more() -> None:
    needed = {(one.method, one.path): one.needed_scope for one in OPERATIONS if not one.open}
    assert needed["GET", "/jobs"] == needed["GET", "/metrics"] == Scope.READ
    assert needed["POST", "/jobs"] == needed["DELETE", "/jobs/{jobId}"] == Scope.WRITE
    assert all(scope is Scope.READ for (method, _), scope in needed.items() if method == "GET")
    assert needed["POST", "/jobs/redrive"] == Scope.ADMIN
    assert {path for (_, path), scope in needed.items() if scope is Scope.ADMIN} == {"/jobs/redrive"}


async def test_what_is_no_live_key_is_refused_always_with_the_same_words(
    api: ApiCaller, keys: Keys, clock: MovableClock
) -> None:
    good, revoked = await keys.add(), await keys.add()
    await keys.revoke(revoked)
    wrong = KeyText(id=good.id, secret=KeyText.draw().secret)
    for shown in (
        f"Bearer {KeyText.draw().reveal()}",
        f"Bearer {wrong.reveal()}",
        f"Bearer {revoked.reveal()}",
        f"Bearer {good.reveal()}x",
        f"Bearer {good.secret}",
        f"Basic {good.reveal()}",
        good.reveal(),
        "Bearer",
        "",
    ):
        answer = await api.call("GET", "/jobs", headers={"Authorization": shown})
        assert answer.status == 401, shown
        assert answer["detail"] == "the header Authorization holds no key that is live here; it looks like Bearer rc_…"
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="ringcron", error="invalid_token"'
    twice = [("Authorization", f"Bearer {good.reveal()}"), ("Authorization", f"Bearer {wrong.reveal()}")]
    assert (await api.call("GET", "/jobs", headers=twice)).status == 401
    assert (await api.call("GET", "/jobs", headers={"Authorization": f"bearer  {good.reveal()}"})).status == 200


async def test_a_revoked_key_opens_nothing_after_the_bound_and_a_new_one_works_at_once(
    api: ApiCaller, keys: Keys, clock: MovableClock
) -> None:
    first = await keys.add()
    assert (await listing(api, first)).status == 200
    second = await keys.add()
    clock.skip(NEWS_SECONDS)
    assert (await listing(api, second)).status == 200
    await keys.revoke(first)
    clock.skip(BOUND_SECONDS)
    assert (await listing(api, first)).status == 401
    assert (await listing(api, second)).status == 200


async def test_a_key_has_its_rate_and_beyond_it_is_told_when_to_come_again(
    api: ApiCaller, keys: Keys, clock: MovableClock
) -> None:
    limited, free = await keys.add(rate=0.01, burst=3), await keys.add()
    assert [(await listing(api, limited)).status for _ in range(3)] == [200, 200, 200]
    refused = await listing(api, limited)
    assert (refused.status, refused["code"]) == (429, "too-many-requests")
    assert 90 <= int(refused.headers["Retry-After"]) <= 100
    assert (await listing(api, free)).status == 200
    clock.skip(100)
    assert [(await listing(api, limited)).status for _ in range(2)] == [200, 429]


async def test_what_is_refused_is_not_done(api: ApiCaller, keys: Keys, connection: Connection) -> None:
    reader, slow = await keys.add(Scope.READ), await keys.add(rate=0.001, burst=1)
    await listing(api, slow)
    job_id = await add_job(connection, due_in=3600)
    for headers, status in (({}, 401), (bearer(reader), 403), (bearer(slow), 429)):
        assert (await api.call("DELETE", f"/jobs/{job_id}", headers=headers)).status == status
        job = {"runAt": "2027-01-01T00:00:00Z"}
        assert (await api.call("POST", "/jobs", json=job, headers=headers)).status == status
    assert await (await connection.execute("select id, state from jobs")).fetchall() == [(job_id, "due")]


async def test_the_use_of_a_key_is_noted_beside_the_call_and_once_a_minute(
    api: ApiCaller, keys: Keys, clock: MovableClock, database_url: str, connection: Connection
) -> None:
    key = await keys.add()
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("select * from api_keys for update")
        assert (await listing(api, key)).status == 200  # although its row cannot be written now
        assert await keys.last_used_at(key) is None
    used_at = await until(lambda: keys.last_used_at(key))
    assert used_at is not None
    assert abs(used_at - datetime.now(UTC)) < timedelta(minutes=5)

    clock.skip(TOUCH_SECONDS)  # this process would note it again; for the database it is not a minute yet
    await listing(api, key)
    await keys.store.touch_key(key.id)
    assert await keys.last_used_at(key) == used_at
    await connection.execute("update api_keys set last_used_at = last_used_at - interval '1 minute'")
    clock.skip(TOUCH_SECONDS)
    await listing(api, key)
    await until(lambda: _newer(keys, key, used_at))


async def _newer(keys: Keys, key: KeyText, than: datetime) -> bool:
    used_at = await keys.last_used_at(key)
    return used_at is not None and used_at > than


async def test_a_name_belongs_to_one_live_key_and_an_add_may_be_sent_twice(keys: Keys) -> None:
    key = await keys.add(name="billing")
    with pytest.raises(ApiKeyNameTaken):
        await keys.add(name="billing")
    await keys.store.add_key(key, name="billing", scope=Scope.WRITE, rate_per_second=None, burst=None)
    await keys.revoke(key)
    revoked_at = (await keys.store.revoke_key(key.id))[1]
    assert (await keys.store.revoke_key(key.id))[1] == revoked_at
    again = await keys.add(name="billing")
    assert [one.id for one in await keys.store.list_keys(live_only=True)] == [again.id]
    with pytest.raises(ApiKeyNotFound):
        await keys.store.revoke_key("nobody")


async def test_what_is_stored_of_a_key_does_not_hold_its_secret(keys: Keys, connection: Connection) -> None:
    key = await keys.add()
    (row,) = await (await connection.execute("select k::text, k.secret_hash from api_keys k")).fetchall()
    assert key.secret not in row[0]
    assert row[1] == key.secret_hash()


async def test_while_the_database_is_away_a_key_opens_only_what_needs_none(
    own_postgres: Callable[..., OwnPostgres], clock: MovableClock
) -> None:
    postgres = own_postgres()
    await migrate(postgres.url)
    async with keys_of(postgres.url) as keys:
        key = await keys.add(Scope.READ)
    async with running_api(postgres.url, clock=clock) as api:
        assert (await listing(api, key)).status == 200
        postgres.stop()
        clock.skip(BOUND_SECONDS)
        assert (await listing(api, key)).status == 503
        assert (await listing(api)).status == 503
        assert (await api.call("GET", "/metrics", headers=bearer(key))).status == 200
        assert (await api.get("/metrics")).status == 401
        assert (await api.get("/healthz")).status == 200


@pytest.mark.processes
async def test_no_log_of_the_api_shows_a_secret(database_url: str, keys: Keys, programs: Programs) -> None:
    good, wrong = await keys.add(Scope.ADMIN, rate=1000, burst=12), KeyText.draw()
    api = programs.api(database_url, log_level="debug")

    def call(method: str, path: str, key: KeyText, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        sent = {**bearer(key), "Content-Type": "application/json", **headers}
        request = urllib.request.Request(api.url + path, body, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    status, text = call("POST", "/jobs", good, b'{"runAt": "2027-01-01T00:00:00Z"}')
    assert status == 201
    answers = [text]
    job = json.loads(text)["jobId"]
    for key in (good, wrong):
        answers += [
            call("GET", "/jobs", key)[1],
            call("GET", f"/jobs?{key.id}=1", key)[1],
            call("DELETE", f"/jobs/{job}", key)[1],
            call("POST", "/jobs", key, b"{")[1],
            call("GET", "/metrics", key)[1],
            call("PUT", "/jobs", key)[1],
        ]
    for method, path in (("GET", "/jobs"), ("GET", f"/jobs/{good.reveal()}"), ("DELETE", f"/jobs/{job}")):
        answers.append(call(method, path, good, None, **{"X-Request-Id": good.reveal()})[1])
    assert {event["by"] for event in api.events("acted")} == {f"admin-1 (key {good.id})"}
    api.terminate()
    assert api.wait() == 0
    for key in (good, wrong):
        assert key.secret not in api.text()
        assert not any(key.secret in answer for answer in answers)


@pytest.mark.processes
async def test_the_api_listens_for_others_only_where_there_is_a_key(
    database_url: str, keys: Keys, programs: Programs
) -> None:
    alone = programs.starting_api(database_url, host="0.0.0.0", port=free_port())
    assert alone.wait() == 2
    (event,) = alone.events("the settings are wrong")
    assert "ringcron key add" in event["fault"]
    assert "RINGCRON_API_HOST" in event["fault"]

    key = await keys.add(Scope.READ)
    api = programs.api(database_url, host="0.0.0.0")
    assert api.call("GET", "/jobs")[0] == 401
    await keys.revoke(key)  # an API that others reach does not open itself when its last key goes
    await until(lambda: api.call("GET", "/jobs", headers=bearer(key))[0] == 401, seconds=3 * BOUND_SECONDS)
    assert api.call("GET", "/jobs")[0] == 401


@pytest.mark.processes
def test_told_that_it_is_insecure_the_api_listens_without_a_key(database_url: str, programs: Programs) -> None:
    api = programs.api(database_url, host="0.0.0.0", insecure=True)
    assert api.call("GET", "/jobs")[0] == 200
    programs.close()
    strict = programs.api(database_url, require_keys="always")
    assert strict.call("GET", "/jobs")[0] == 401
    assert strict.call("GET", "/readyz")[0] == 200


@pytest.mark.processes
def test_where_the_database_cannot_be_asked_the_api_starts_and_lets_nobody_in(programs: Programs) -> None:
    url = f"postgresql://me@127.0.0.1:{free_port()}/x"
    port = free_port()
    program = programs.starting_api(url, host="0.0.0.0", port=port)
    until_sync(lambda: program.events("listening"), seconds=30)
    assert program.events("whether there are keys is not known; nobody is let in until it is")
    request = urllib.request.Request(f"http://127.0.0.1:{port}/jobs", headers=bearer(KeyText.draw()))
    with pytest.raises(urllib.error.HTTPError) as raised, urllib.request.urlopen(request, timeout=30):
        pass
    with raised.value as answer:
        assert answer.code == 503


async def test_known_keys_are_honoured_and_revoked_ones_are_not_while_work_has_every_connection(
    database_url: str, keys: Keys, connection: Connection, clock: MovableClock
) -> None:
    key = await keys.add(Scope.READ)
    async with running_api(database_url, clock=clock, pool_size=1, may_be_open=False) as api:
        assert (await listing(api, key)).status == 200

        async def waits() -> bool:
            here = "(select oid from pg_database where datname = current_database())"
            cursor = await connection.execute(f"select from pg_locks where not granted and database = {here}")
            return await cursor.fetchone() is not None

        async with connection.transaction():
            await connection.execute("lock table jobs in access exclusive mode")
            working = [asyncio.create_task(listing(api, key)) for _ in range(8)]
            await until(waits)
            clock.skip(BOUND_SECONDS + 1)
            assert (await api.call("POST", "/jobs", json={}, headers=bearer(key))).status == 403
            await keys.revoke(key)
            clock.skip(BOUND_SECONDS + 1)
            assert (await api.call("POST", "/jobs", json={}, headers=bearer(key))).status == 401
        await asyncio.gather(*working)
