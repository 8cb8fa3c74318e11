"""`ringcron key`, run as a user runs it: what it prints, what it ends with, and that a key it made opens the API."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psycopg
import pytest
from psycopg import sql

from ringcron.api_keys import KeyText
from ringcron.local.processes import free_port
from tests.support.keys import bearer
from tests.support.programs import Programs

pytestmark = [pytest.mark.store, pytest.mark.processes]


def key(database_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("DATABASE_URL")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "ringcron", "key", *arguments],
        env={**inherited, "RINGCRON_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_key_that_is_piped_opens_the_api_until_it_is_revoked(database_url: str, programs: Programs) -> None:
    made = key(database_url, "add", "ci runner", "--scope", "write", "--rate", "2.5")
    assert made.returncode == 0
    drawn = KeyText.parse(made.stdout.removesuffix("\n"))
    assert drawn is not None
    assert drawn.id in made.stderr
    assert "not shown again" in made.stderr
    assert drawn.secret not in made.stderr
    api = programs.api(database_url)
    assert api.call("GET", "/jobs")[0] == 401
    assert api.call("GET", "/jobs", headers=bearer(drawn))[0] == 200

    revoked = key(database_url, "revoke", drawn.id)
    assert (revoked.returncode, revoked.stdout) == (0, f"revoked the key {drawn.id} of ci runner\n")
    assert key(database_url, "revoke", drawn.id).returncode == 0
    table = key(database_url, "list").stdout
    assert table.splitlines()[0].split() == ["ID", "NAME", "SCOPE", "RATE", "CREATED", "LAST", "USED", "REVOKED"]
    assert "2.5/s, 3 at once" in table
    assert drawn.secret not in table


def test_programs_read_and_write_json(database_url: str) -> None:
    assert json.loads(key(database_url, "list", "--json").stdout) == []
    made = json.loads(
        key(database_url, "add", "ops", "--scope", "admin", "--rate", "5", "--burst", "9", "--json").stdout
    )
    drawn = KeyText.parse(made.pop("key"))
    assert drawn is not None
    about = {"id": drawn.id, "name": "ops", "scope": "admin", "ratePerSecond": 5.0, "burst": 9}
    assert made == about
    (listed,) = json.loads(key(database_url, "list", "--json").stdout)
    assert listed.pop("createdAt").endswith("Z")
    assert listed == {**about, "lastUsedAt": None, "revokedAt": None}
    revoked = json.loads(key(database_url, "revoke", drawn.id, "--json").stdout)
    assert (revoked["id"], revoked["name"]) == (drawn.id, "ops")
    assert json.loads(key(database_url, "list", "--json").stdout)[0]["revokedAt"] == revoked["revokedAt"]


def test_what_the_database_refuses_ends_with_1_and_a_sentence(database_url: str, empty_database_url: str) -> None:
    assert key(database_url, "add", "ci", "--scope", "read").returncode == 0
    taken = key(database_url, "add", "ci", "--scope", "read")
    assert (taken.returncode, taken.stdout) == (1, "")
    assert "'ci'" in taken.stderr
    unknown = key(database_url, "revoke", "nobody")
    assert unknown.returncode == 1
    assert "ringcron key list" in unknown.stderr
    unmigrated = key(empty_database_url, "list")
    assert unmigrated.returncode == 1
    assert "migrate" in unmigrated.stderr
    away = key(f"postgresql://me:s3cret@127.0.0.1:{free_port()}/x", "list")
    assert away.returncode == 1
    for done in (taken, unknown, unmigrated, away):
        assert done.stderr.startswith("ringcron: ")
        assert "Traceback" not in done.stderr
        assert "s3cret" not in done.stderr


def test_a_key_that_is_given_whole_to_revoke_is_not_repeated(database_url: str) -> None:
    whole = KeyText.draw()
    done = key(database_url, "revoke", whole.reveal())
    assert done.returncode == 1
    assert whole.secret[:12] not in done.stderr + done.stdout


def test_a_role_that_may_not_see_the_keys_is_told_so(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set role = pg_monitor").format(database))
    done = key(database_url, "list")
    assert done.returncode == 1
    assert "permission denied" in done.stderr
    assert "Traceback" not in done.stderr
