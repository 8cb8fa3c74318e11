"""`ringcron key` used wrongly: refused before anything is asked of the database."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ringcron.cli.keys import key

NOWHERE = {"RINGCRON_DATABASE_URL": "postgresql://127.0.0.1:1/x"}
"""Whoever asks it ends with 1."""


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "ci"),
        ("add", "--scope", "read"),
        ("add", "", "--scope", "read"),
        ("add", " ci", "--scope", "read"),
        ("add", "c\ni", "--scope", "read"),
        ("add", "x" * 101, "--scope", "read"),
        ("add", "ci", "--scope", "root"),
        ("add", "ci", "--scope", "read", "--rate", "0"),
        ("add", "ci", "--scope", "read", "--rate", "nan"),
        ("add", "ci", "--scope", "read", "--rate", "many"),
        ("add", "ci", "--scope", "read", "--burst", "3"),
        ("add", "ci", "--scope", "read", "--rate", "1", "--burst", "0"),
        ("revoke",),
        ("revoke", "a", "b"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(key, arguments, env=NOWHERE)
    assert (done.exit_code, done.stdout) == (2, "")


def test_without_a_database_it_says_which_setting_is_missing() -> None:
    done = CliRunner().invoke(key, ["list"], env={"RINGCRON_DATABASE_URL": None, "DATABASE_URL": None})
    assert done.exit_code == 2
    assert "RINGCRON_DATABASE_URL is not set" in done.stderr
