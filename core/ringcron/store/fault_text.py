"""What an error of PostgreSQL may say: where and what, never the values.

Invariant: the text of an error that leaves a connection (`ringcron.store.opening`) holds no value of a row or of a
parameter, so that whatever logs it, with a traceback or without, shows no payload and no secret. PostgreSQL quotes
values in DETAIL, HINT and CONTEXT ("Failing row contains …"), and, where a value itself is wrong, in its message too.
"""

from __future__ import annotations

import re
from typing import Final

import psycopg

_QUOTED: Final = re.compile(r"""(["']).*\1""", re.DOTALL)


def tell_no_values(error: psycopg.Error) -> None:
    """Reduce the text of an error to its first message, its SQLSTATE and the names of what it is about."""
    diagnosis = error.diag
    text = diagnosis.message_primary or str(error)
    if isinstance(error, psycopg.DataError):
        text = _QUOTED.sub("…", text)
    about = {
        "SQLSTATE": error.sqlstate,
        "table": diagnosis.table_name,
        "column": diagnosis.column_name,
        "constraint": diagnosis.constraint_name,
    }
    named = ", ".join(f"{what} {name}" for what, name in about.items() if name is not None)
    error.args = (f"{text} ({named})" if named else text,)
