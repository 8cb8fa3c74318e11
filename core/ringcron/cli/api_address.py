"""Where the API is and which key it is shown, as flags, environment and folder say.

Invariants: a flag wins over its variable, that over the file that `<VARIABLE>_FILE` names. What a folder says about an
address is believed only if it is this user's own and names this machine: an API key follows it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ringcron.errors import ConfigError
from ringcron.readers import is_loopback

URL_VARIABLE: Final = "RINGCRON_API_URL"
KEY_VARIABLE: Final = "RINGCRON_API_KEY"
DEFAULT_URL: Final = "http://127.0.0.1:8080"
UP_FILE: Final = Path(".ringcron/up.json")


def url_of(environment: Mapping[str, str], up_file: Path = UP_FILE) -> str:
    """The address of the API, where no flag gives it."""
    return environment.get(URL_VARIABLE) or _url_of_folder(up_file) or DEFAULT_URL


def key_of(environment: Mapping[str, str]) -> str | None:
    """The API key that the environment names. ConfigError where it names a file that cannot be read."""
    if key := environment.get(KEY_VARIABLE):
        return key
    path = environment.get(f"{KEY_VARIABLE}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([f"{KEY_VARIABLE}_FILE: {path} cannot be read: {reason}"]) from None


def _url_of_folder(up_file: Path) -> str | None:
    """The API of the `ringcron up` that runs in this folder; None where none does."""
    try:
        if up_file.stat().st_uid != os.geteuid():
            return None
        url: str = json.loads(up_file.read_text(encoding="utf-8"))["apiUrl"]
        return url if is_loopback(urlsplit(url).hostname or "") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
