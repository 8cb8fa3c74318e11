"""The schema and every statement of ringcron, as files.

Invariant: one statement per file in `queries/`, named as the store method that runs it; no SQL in Python, no logic in
plpgsql. Migrations only go forward.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Final, LiteralString

_COMMENT: Final = re.compile(r"^\s*--.*$|\s+-- .*$", re.MULTILINE)


@cache
def query(name: str) -> LiteralString:
    """The text of `queries/<name>.sql` without its comments. Parameters are written %(name)s."""
    text = resources.files(__name__).joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")
    return _COMMENT.sub("", text).strip()
