"""The folder of one `ringcron up`."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ringcron.local.data_folder import DataFolder
from ringcron.local.errors import LocalServerError


def test_a_second_one_is_refused_while_the_first_is_there(tmp_path: Path) -> None:
    with DataFolder(tmp_path / "data"):
        with pytest.raises(LocalServerError, match=rf"process {os.getpid()}\) already runs .*--data-dir"):
            DataFolder(tmp_path / "data").__enter__()
        with DataFolder(tmp_path / "other"):
            pass
    with DataFolder(tmp_path / "data"):
        pass


def test_fresh_deletes_the_servers_data_and_the_logs_and_nothing_else(tmp_path: Path) -> None:
    with DataFolder(tmp_path) as folder:
        for path in (folder.postgres, folder.zookeeper, folder.logs, tmp_path / "mine"):
            path.mkdir()
            (path / "file").touch()
        folder.clear()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "mine"]
        assert (tmp_path / "mine/file").exists()


def test_fresh_follows_a_link_to_data_that_lie_elsewhere(tmp_path: Path) -> None:
    with DataFolder(tmp_path / "data") as folder:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        folder.postgres.symlink_to(elsewhere)
        folder.clear()
        assert not elsewhere.exists()
        assert not folder.postgres.is_symlink()


def test_up_json_is_for_its_owner_only_and_gone_at_the_end(tmp_path: Path) -> None:
    with DataFolder(tmp_path) as folder:
        folder.up_file.write_text("left by one that was killed")
    with DataFolder(tmp_path) as folder:
        assert not folder.up_file.exists()
        folder.announce({"apiUrl": "http://127.0.0.1:1"})
        folder.announce({"apiUrl": "http://127.0.0.1:2"})
        assert json.loads(folder.up_file.read_text()) == {"apiUrl": "http://127.0.0.1:2"}
        assert stat.S_IMODE(folder.up_file.stat().st_mode) == 0o600
    assert not folder.up_file.exists()


def test_the_logs_of_the_last_time_are_kept_once(tmp_path: Path) -> None:
    with DataFolder(tmp_path) as folder:
        folder.turn_logs()
        for number in (1, 2, 3):
            folder.log_of("worker-1").write_text(f"start {number}")
            folder.turn_logs()
        assert {log.name: log.read_text() for log in folder.logs.iterdir()} == {"worker-1.log.1": "start 3"}
