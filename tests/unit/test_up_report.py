"""What `ringcron up` shows when everything serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcron.local.data_folder import DataFolder
from ringcron.local.report import Addresses, announcement


@pytest.mark.parametrize("found", [True, False])
def test_the_commands_are_pointed_at_an_up_that_they_do_not_find(tmp_path: Path, found: bool) -> None:
    addresses = Addresses(port=1234, database_url="postgresql://a:secret@127.0.0.1:5/r", zookeeper="none")
    lines = announcement(addresses, DataFolder(tmp_path), [], 10, found=found).splitlines()
    assert ("  export RINGCRON_API_URL=http://127.0.0.1:1234" in lines) is not found
    assert "  dashboard   http://127.0.0.1:1234/dashboard" in lines
    assert any(line.endswith("ringcron job list") for line in lines)
    assert not any("secret" in line for line in lines)
