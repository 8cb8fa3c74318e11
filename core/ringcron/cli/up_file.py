"""What the `ringcron up` that runs in this folder tells of itself, in its up.json.

Invariant: an address is believed only if the file is this user's own and the address is on this machine: an API key or
a password follows it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from ringcron.readers import is_loopback

UP_FILE: Final = Path(".ringcron/up.json")


def address_in(up_file: Path, member: Literal["apiUrl", "databaseUrl"]) -> str | None:
    """An address of the `ringcron up` that wrote this file; None where none runs."""
    try:
        if up_file.stat().st_uid != os.geteuid():
            return None
        url: str = json.loads(up_file.read_text(encoding="utf-8"))[member]
        return url if is_loopback(urlsplit(url).hostname or "") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
