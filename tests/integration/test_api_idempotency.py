"""Idempotency-Key: one effect, one answer, whatever is sent again, cut or crashes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.models import PARKED
from ringcron.store import idempotency as module
from ringcron.store import keyed
from ringcron.store.pool import Pool
from ringcron.store.upkeep import Upkeep
from ringcron_sql import query
from tests.support.api import Answer, ApiCaller, running_api
from tests.support.plans import explain
from tests.support.waiting import until

FUTURE = "2100-01-01T00:00:00Z"
ONCE = {"runAt": FUTURE, "payload": {"a": 1}}
NDJSON = "application/x-ndjson"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def count(connection: psycopg.AsyncConnection[Any], table: str = "jobs") -> int:
    row = await (await connection.execute(f"select count(*) from {table}".encode())).fetchone()
    assert row is not None
    return int(row[0])


async def post(
    api: ApiCaller, key: str, body: Any = ONCE, path: str = "/jobs", kind: str = "application/json"
) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await api.call("POST", path, data=data, headers={"Idempotency-Key": key, "Content-Type": kind})


def is_replayed(answer: Answer) -> bool:
    return answer.headers.get("Idempotency-Replayed") == "true"


async def test_the_same_request_gets_the_same_answer_and_has_one_effect(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    first = await post(api, "k")
    again = await post(api, "k")
    assert first.status == again.status == 201
    assert (is_replayed(first), is_replayed(again)) == (False, True)
    assert first.body == again.body
    assert first.headers["Location"] == again.headers["Location"]
    assert first.headers["X-Request-Id"] != again.headers["X-Request-Id"]
    assert (await post(api, "other"))["jobId"] != first["jobId"]
    assert await count(connection) == 2


async def test_H1_A55_fifty_at_once_make_one_job(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    answers = await asyncio.gather(*(post(api, "k") for _ in range(50)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer["jobId"] for answer in answers}) == 1
    assert sum(not is_replayed(answer) for answer in answers) == 1
    assert await count(connection) == 1


async def test_H1_H2_a_caller_that_went_away_gets_the_answer_when_it_asks_again(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    body = json.dumps({"jobs": [{**ONCE, "key": f"k{n}"} for n in range(20)]}).encode()
    head = f"Host: x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = api.url.removeprefix("http://").split(":")

    async def waits() -> bool:
        row = await (await connection.execute("select count(*) from pg_locks where not granted")).fetchone()
        return row is not None and row[0] > 0

    async with connection.transaction():
        await connection.execute("lock table jobs in exclusive mode")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /jobs/batch HTTP/1.1\r\n" + head.encode() + body)
        await until(waits, what="the batch waits for the lock, its keys taken")
        writer.transport.abort()
    again = await post(api, "k", body, "/jobs/batch")
    assert (again.status, is_replayed(again)) == (207, True)
    assert {result["status"] for result in again["results"]} == {201}
    assert (await count(connection), await count(connection, "job_keys")) == (20, 20)


async def test_at_once_in_several_processes(database_url: str, connection: psycopg.AsyncConnection[Any]) -> None:
    async with running_api(database_url) as one, running_api(database_url) as two, running_api(database_url) as three:
        answers = await asyncio.gather(*(post(api, "k") for _ in range(5) for api in (one, two, three)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer["jobId"] for answer in answers}) == 1
    assert await count(connection) == 1


async def test_another_body_or_query_under_the_key_is_refused(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    assert (await post(api, "k")).status == 201
    other = await post(api, "k", {**ONCE, "payload": {"a": 2}})
    assert (other.status, other["code"]) == (422, "idempotency-key-reused")
    assert (await post(api, "k", json.dumps(ONCE).encode() + b" "))["code"] == "idempotency-key-reused"
    batch = {"jobs": [ONCE]}
    assert (await post(api, "k", batch, "/jobs/batch")).status == 207  # another path: another key
    assert (await post(api, "k", batch, "/jobs/batch?atomic=true"))["code"] == "idempotency-key-reused"
    assert await count(connection) == 2


async def test_only_successes_are_kept(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    held = await api.post("/jobs", {**ONCE, "key": "held"})
    refused = {**ONCE, "key": "held"}
    assert (await post(api, "k", refused)).status == 409
    assert await count(connection, "idempotency_keys") == 0
    assert (await api.delete(f"/jobs/{held['jobId']}")).status == 204
    created = await post(api, "k", refused)
    assert (created.status, is_replayed(created)) == (201, False)
    assert (await post(api, "bad", {"runAt": "x"})).status == 422
    assert (await post(api, "bad")).status == 201


async def test_a_rehearsal_takes_no_key(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    rehearsed = await post(api, "k", path="/jobs?dryRun=true")
    assert rehearsed.status == 200
    assert await count(connection) == 0
    created = await post(api, "k")
    assert (created.status, is_replayed(created)) == (201, False)


@pytest.mark.parametrize("kind", ["application/json", NDJSON])
async def test_a_batch(api: ApiCaller, connection: psycopg.AsyncConnection[Any], kind: str) -> None:
    jobs: list[Any] = [ONCE] * 2_500 + [{"runAt": "x"}, {**ONCE, "key": "a"}, {**ONCE, "key": "a"}]
    lines = b"\n".join(json.dumps(job).encode() for job in jobs)
    body = lines if kind == NDJSON else json.dumps({"jobs": jobs}).encode()
    first = await post(api, "k", body, "/jobs/batch", kind)
    again = await post(api, "k", body, "/jobs/batch", kind)
    assert first.status == again.status == 207
    assert is_replayed(again)
    assert first.body == again.body
    assert await count(connection) == 2_501


@pytest.mark.parametrize(("key", "status"), [("k" * 255, 201), ("k" * 256, 422), ("a b", 201), ("\u00fc", 422)])
async def test_which_keys_there_are(api: ApiCaller, key: str, status: int) -> None:
    answer = await post(api, key)
    assert answer.status == status
    if status == 422:
        assert answer.faults == {"/Idempotency-Key": "invalid"}
        assert answer["errors"][0]["in"] == "header"


async def test_a_key_that_another_transaction_holds(
    api: ApiCaller, database_url: str, connection: psycopg.AsyncConnection[Any]
) -> None:
    await post(api, "k")
    row = await (await connection.execute("delete from idempotency_keys returning id, fingerprint")).fetchone()
    assert row is not None
    key_id, fingerprint = row
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        assert await module.hold_key(other, key_id, fingerprint, wait_seconds=1) is None
        answers = await asyncio.gather(*(post(api, "k") for _ in range(3)))
        assert {(answer.status, answer["code"]) for answer in answers} == {(409, "idempotency-in-progress")}
        assert answers[0].headers["Retry-After"]
        assert await count(connection) == 1
        waiting = asyncio.create_task(post(api, "k"))
        await other.rollback()
    assert (await waiting).status == 201
    assert await count(connection) == 2


async def test_a_crash_between_the_effect_and_its_answer_undoes_both(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = module.keep_answer
    crashes = iter([True])

    async def cut_once(held: psycopg.AsyncConnection[Any], key_id: bytes, answer: module.Answer) -> None:
        if next(crashes, False):
            await held.close()
        await keep(held, key_id, answer)

    monkeypatch.setattr("ringcron.store.calls.keep_answer", cut_once)
    created = await post(api, "k")
    assert created.status == 201
    assert await count(connection) == 1
    assert (await post(api, "k")).body == created.body


async def test_a_connection_lost_within_the_effect_makes_the_whole_be_done_again(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([True])

    async def lose_once(held: psycopg.AsyncConnection[Any], *given: Any, **members: Any) -> Any:
        done = await keyed.create(held, *given, **members)
        if next(losses, False):
            await connection.execute("select pg_terminate_backend(%s)", (held.info.backend_pid,))
        return done

    monkeypatch.setattr("ringcron.store.api.create", lose_once)
    created = await post(api, "k")
    assert (created.status, is_replayed(created)) == (201, False)
    assert await count(connection) == 1
    assert (await post(api, "k")).body == created.body


async def test_a_commit_that_was_not_answered_is_found_again(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = module.keep_answer
    losses = iter([True])

    async def lose_once(held: psycopg.AsyncConnection[Any], key_id: bytes, answer: module.Answer) -> None:
        await keep(held, key_id, answer)
        if next(losses, False):
            await held.execute("commit")
            await held.close()

    monkeypatch.setattr("ringcron.store.calls.keep_answer", lose_once)
    batch = {"jobs": [ONCE] * 3}
    assert (await post(api, "k", batch, "/jobs/batch")).status == 207
    assert await count(connection) == 3
    assert is_replayed(await post(api, "k", batch, "/jobs/batch"))


async def test_an_answer_is_kept_for_a_day(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    first = await post(api, "k")
    await connection.execute("update idempotency_keys set created_at = now() - interval '23 hours 59 minutes'")
    assert (await post(api, "k"))["jobId"] == first["jobId"]
    await connection.execute("update idempotency_keys set created_at = now() - interval '24 hours'")
    second = await post(api, "k", {**ONCE, "payload": 2})
    assert (second.status, is_replayed(second)) == (201, False)
    assert (await post(api, "k", {**ONCE, "payload": 2}))["jobId"] == second["jobId"]
    assert await count(connection) == 2


async def test_upkeep_sweeps_what_is_older(
    api: ApiCaller, database_url: str, connection: psycopg.AsyncConnection[Any]
) -> None:
    await post(api, "young")
    await connection.execute(
        "insert into idempotency_keys (id, fingerprint, created_at, status) "
        "select int4send(n), '', now() - interval '25 hours', 201 from generate_series(1, 2500) as n"
    )
    pool = Pool(database_url, application_name="upkeep", max_size=2, seconds=60)
    upkeep = Upkeep(
        pool, SystemClock(), days_ahead=1, keep_runs_seconds=86400, keep_jobs_seconds=86400, keep_runs_bytes=None
    )
    try:
        done = await upkeep.step()
    finally:
        await pool.close()
    assert "idempotency_keys: swept 2500 answers older than a day" in done
    assert await count(connection, "idempotency_keys") == 1


async def test_the_sweep_reads_what_is_old_by_its_index(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(
        "insert into idempotency_keys (id, fingerprint, created_at, status) "
        "select int4send(n), '', now() - make_interval(mins => n), 201 from generate_series(1, 3000) as n"
    )
    await connection.execute("analyze idempotency_keys")
    plan = await explain(connection, query("sweep_idempotency_keys"), {"kept_seconds": 86400.0})
    assert "idempotency_keys_age" in plan.indexes


async def test_a_trigger_and_a_redrive(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job = await api.post("/jobs", {"schedule": "0 0 1 1 *"})
    path = f"/jobs/{job['jobId']}/trigger"
    answers = await asyncio.gather(*(post(api, "k", b"", path) for _ in range(10)))
    assert {answer.status for answer in answers} == {202}
    assert sum(not is_replayed(answer) for answer in answers) == 1
    dead = await api.post("/jobs", ONCE)
    await connection.execute(
        "update jobs set state = 'dead', next_run_at = %s, dead_reason = 'x' where id = %s", (PARKED, dead["jobId"])
    )
    first, again = [await post(api, "r", b"", "/jobs/redrive") for _ in range(2)]
    assert first.status == again.status == 202
    assert first.body == again.body
    assert (first["count"], is_replayed(again)) == (1, True)
    revived = await post(api, "one", b"", f"/jobs/{dead['jobId']}/redrive")
    assert revived.status == 409
