"""Take passwords out of text that people will read."""

from __future__ import annotations

import re
from typing import Final

_IN_URL: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s:/@\"']*):[^\s/\"']*(?=@)", re.IGNORECASE)
_IN_CONNINFO: Final = re.compile(r"(?P<before>\bpassword\s*=\s*)(?:\\?'(?:\\.|[^'\\])*'|[^\s'\"&]+)", re.IGNORECASE)


def redact(text: str) -> str:
    """The text with each password of a URL, or of libpq's `password=`, replaced by ***."""
    return _IN_CONNINFO.sub(r"\g<before>***", _IN_URL.sub(r"\g<before>:***", text))
