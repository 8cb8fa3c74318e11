"""Modules of handlers are tried before servers start."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcron.errors import ConfigError
from ringcron.local.handler_modules import check_handlers


def test_what_can_be_imported_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text("print('hello')\nfrom ringcron import handler\nhandler('mine')(lambda: 1)\n")
    check_handlers([])
    check_handlers(["jobs", "jobs.py"])


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("nosuchjobs", r"--handlers nosuchjobs: cannot be imported: ModuleNotFoundError: No module named 'nosuchjobs'"),
        ("broken", r"--handlers broken: cannot be imported: ValueError: not today"),
        ("no-module", r"must be a Python module"),
    ],
)
def test_what_cannot_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, why: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(
        "import sys\nprint('noise', file=sys.stderr, end='')\nraise ValueError('not today')\n"
    )
    with pytest.raises(ConfigError, match=why):
        check_handlers([module])
