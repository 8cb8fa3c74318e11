"""The older build of a chaos run: found in a history, refused where there is none or where it does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from loadtest.chaos import builds
from loadtest.chaos.builds import MIGRATIONS, older_build
from ringcron.local.errors import NotAvailable

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="this machine has no git")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of three commits: the kernel, a change of it with a second migration, and a change of its words."""
    tree = tmp_path / "tree"
    for part in builds.PARTS:
        (tree / part).mkdir(parents=True)
        (tree / part / "file").write_text(part)
    (tree / "core/ringcron").mkdir()
    (tree / MIGRATIONS).mkdir(parents=True)
    monkeypatch.setattr(builds, "CHECKOUT", tree)
    git(tree, "init", "--quiet")
    for number, migration in enumerate(("0001_a.sql", "0002_b.sql", None), 1):
        (tree / "core/ringcron/__init__.py").write_text(f"number = {number}\n")
        if migration is not None:
            (tree / MIGRATIONS / migration).write_text(f"select {number}\n")
        git(tree, "add", ".")
        git(tree, "commit", "--quiet", "--message", f"number {number}")
    return tree


def git(tree: Path, *arguments: str) -> None:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", tree, *who, *arguments], check=True)


def number_in(folder: Path) -> str:
    return (folder / "core/ringcron/__init__.py").read_text().strip()


def test_it_is_the_newest_that_knows_fewer_migrations(tree: Path, tmp_path: Path) -> None:
    build = older_build(None, tmp_path / "older")
    assert (number_in(tmp_path / "older"), build.migrations) == ("number = 1", 1)
    assert build.path.split(":")[0] == str(tmp_path / "older/core")
    assert build.path.split(":")[-1] == str(tree)


def test_it_is_the_one_that_was_named(tree: Path, tmp_path: Path) -> None:
    build = older_build("HEAD~1", tmp_path / "older")
    assert (number_in(tmp_path / "older"), build.migrations) == ("number = 2", 2)


def test_a_build_whose_migrations_are_not_ours_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / MIGRATIONS / "0001_a.sql").write_text("select 'something else'\n")
    with pytest.raises(NotAvailable, match="no older build whose migrations are the first"):
        older_build(None, tmp_path / "older")
    with pytest.raises(NotAvailable, match="are not the first ones of this tree"):
        older_build("HEAD", tmp_path / "older")


def test_a_tree_without_a_history_is_told_so(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "CHECKOUT", tmp_path)
    with pytest.raises(NotAvailable, match="git"):
        older_build(None, tmp_path / "older")
