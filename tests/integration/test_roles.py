"""The grants of sql/README.md are enough for the API, and not for more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from ringcron.api_keys import Scope
from tests.support.api import running_api
from tests.support.keys import bearer, keys_of
from tests.support.waiting import until

pytestmark = pytest.mark.store

README = Path(__file__).parents[2] / "sql" / "README.md"


@contextmanager
def new_connections_as_app(database_url: str) -> Iterator[None]:
    """Every connection that is opened meanwhile has the rights of the role that the README makes."""
    role = f"ringcron_app_{uuid4().hex[:8]}"
    (grants,) = re.findall(r"```sql\n(grant usage.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    with psycopg.connect(database_url, autocommit=True) as owner:
        database = sql.Identifier(owner.info.dbname)
        owner.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        owner.execute(grants.replace("ringcron_app", role).encode())
        owner.execute(sql.SQL("alter database {} set role = {}").format(database, sql.Literal(role)))
        try:
            yield
        finally:
            owner.execute(sql.SQL("alter database {} reset role").format(database))
            owner.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(role)))


async def test_the_api_does_its_work_and_can_make_no_key_and_change_no_record(database_url: str) -> None:
    async with keys_of(database_url) as keys:
        key = await keys.add(Scope.WRITE)
        with new_connections_as_app(database_url):
            refuse_more_than_granted(database_url)
            async with running_api(database_url) as api:
                job = {"runAt": "2027-01-01T00:00:00Z", "key": "k", "tags": ["t"]}
                created = await api.call("POST", "/jobs", json=job, headers={**bearer(key), "Idempotency-Key": "i"})
                assert created.status == 201
                path = f"/jobs/{created['jobId']}"
                patched = await api.call("PATCH", path, json={"name": "n"}, headers=bearer(key))
                assert patched.status == 200
                assert (await api.call("DELETE", path, headers=bearer(key))).status == 204
                audit = await api.call("GET", f"{path}/audit", headers=bearer(key))
                assert [entry["action"] for entry in audit.body] == ["cancel", "patch"]
                await until(lambda: keys.last_used_at(key))


def refuse_more_than_granted(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as app:
        for statement in (
            "insert into api_keys select * from api_keys",
            "update api_keys set revoked_at = null",
            "update audit_log set key_id = null",
            "delete from audit_log",
            "create table mine ()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute(statement.encode())
