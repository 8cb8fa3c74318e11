"""A history as a file, so that it can be looked at and checked again when the cluster is gone.

    .venv/bin/python -m loadtest.chaos.keeping loadtest-out/chaos/history.json.gz

Invariant: what is read is what was kept; whoever runs this as a program gets the violations that the run found.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from loadtest.chaos.history import Assigned, Branch, Call, Fault, History, Hit, Job, Run, Settings, Skip, Step, Version
from loadtest.chaos.invariants import check
from loadtest.chaos.telling import told

_LISTS: Final[Mapping[str, type[Any]]] = {
    "versions": Version,
    "runs": Run,
    "skips": Skip,
    "hits": Hit,
    "calls": Call,
    "assignments": Assigned,
    "faults": Fault,
}


def keep(history: History, path: Path) -> None:
    """Write it down."""
    # Not json.dump: it writes piece by piece, which takes a hundred times as long.
    text = json.dumps(dataclasses.asdict(history))
    path.write_bytes(gzip.compress(text.encode(), compresslevel=1))


def read(path: Path) -> History:
    """Read it back."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document = json.load(file)
    return History(
        settings=Settings(**document["settings"]),
        abandoned=[Branch(until=one["until"], **_read(one)) for one in document["abandoned"]],
        steps=[Step(**one) for one in document["steps"]],
        ended_at=document["ended_at"],
        **_read(document),
    )


def _read(document: dict[str, Any]) -> dict[str, Any]:
    """The jobs and the lists that are there."""
    there = {name: kind for name, kind in _LISTS.items() if name in document}
    lists = {name: [kind(**_tuples(one)) for one in document[name]] for name, kind in there.items()}
    return {"jobs": {job: Job(**_tuples(one)) for job, one in document["jobs"].items()}, **lists}


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples."""
    return {
        key: tuple(tuple(one) if isinstance(one, list) else one for one in value) if isinstance(value, list) else value
        for key, value in document.items()
    }


def main() -> None:
    history = read(Path(sys.argv[1]))
    for violation in check(history):
        print(told(history, violation))


if __name__ == "__main__":
    main()
