"""Take passwords, and the secrets of API keys, out of text that people will read."""

from __future__ import annotations

import re
from typing import Final

_IN_URL: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s:/@\"']*):[^\s/\"']*(?=@)", re.IGNORECASE)
_IN_CONNINFO: Final = re.compile(r"(?P<before>\bpassword\s*=\s*)(?:\\?'(?:\\.|[^'\\])*'|[^\s'\"&]+)", re.IGNORECASE)
_API_KEY: Final = re.compile(r"\b(?P<before>rc_[0-9A-Za-z]+_)[0-9A-Za-z]{16,}")


def redact(text: str) -> str:
    """The text with *** for each password of a URL or of libpq's `password=`, and for each secret of an API key."""
    text = _IN_CONNINFO.sub(r"\g<before>***", _IN_URL.sub(r"\g<before>:***", text))
    return _API_KEY.sub(r"\g<before>***", text)
