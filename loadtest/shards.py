"""Lag of each shard over time: sampled from GET /shards, or worked out from when each job was claimed.

Invariant: both give the lag that the contract defines, now − oldest due unclaimed instant of the shard's slots, or
nothing where nothing is due. Sampling sees what an operator sees, once a second. A spike that is over in a second is
worked out afterwards instead, from the claims that run rows tell: exact, and free of cost while it runs.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from loadtest.database import Database
from loadtest.distributions import bin_width
from loadtest.jobs import DueJob
from loadtest.outcome import ABSENT, HeatMap
from ringcron.clock import SystemClock

SAMPLE_SECONDS: Final = 1.0
"""GET /shards is read from the tables once a second at most."""
SHORT_SECONDS: Final = 15.0
"""A run that took less is worked out from its claims."""


class Sample(NamedTuple):
    """Lag in seconds by worker, None where nothing of its slice is due, at so many seconds of the elapsed clock.

    A worker that has not reported itself lately is not in it.
    """

    at: float
    lag: Mapping[str, float | None]


class ShardSampler:
    """Reads GET /shards once a second, in a thread of its own, within `with`."""

    def __init__(self, api_url: str, api_key: str | None) -> None:
        self._address = urlsplit(api_url)
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shard sampler", daemon=True)
        self._clock = SystemClock()
        self.samples: list[Sample] = []
        self.failures = 0

    def __enter__(self) -> ShardSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                answer = self._read()
                items = answer["items"]
                lag = {_name(item["worker"]): item["lagSeconds"] if item["due"] else None for item in items}
                self.samples.append(Sample(self._clock.elapsed(), lag))
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                self.failures += 1
            self._stop.wait(SAMPLE_SECONDS)

    def _read(self) -> dict[str, Any]:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._address.netloc, timeout=5)
        try:
            connection.request("GET", f"{self._address.path}/shards", headers=self._headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()


def read_owners(database: Database, handler: str) -> dict[str, list[tuple[int, int]]]:
    """Which arcs each worker holds, by its name, as workers last reported."""
    owners: dict[str, list[tuple[int, int]]] = {}
    for name, lo, hi in database.run("list_arcs", handler=handler):
        owners.setdefault(name, []).append((lo, hi))
    return owners


def lag_from_claims(
    jobs: Sequence[DueJob],
    claimed_at: Mapping[Any, float],
    owners: Mapping[str, Sequence[tuple[int, int]]],
    *,
    origin: float,
    until: float,
) -> HeatMap | None:
    """Worked out: a job counts for its slot's owner from its instant until its claim, whoever claimed it."""
    if not owners or until <= origin:
        return None
    rows = sorted(owners, key=_natural)
    width = bin_width(until - origin)
    columns = max(1, round((until - origin) / width + 0.5))
    cells: list[list[float | None]] = []
    for name in rows:
        arcs = owners[name]
        mine = sorted(
            (job.due_at.timestamp(), claimed_at.get(job.id, until))
            for job in jobs
            if any(lo <= job.slot <= hi for lo, hi in arcs)
        )
        line: list[float | None] = []
        for column in range(columns):
            now = origin + (column + 0.5) * width
            oldest = next((due for due, claimed in mine if due <= now < claimed), None)
            line.append(None if oldest is None else now - oldest)
        cells.append(line)
    note = f"Worked out from the claim of every job, in steps of {width * 1000:g} ms. A row is one worker's slice."
    return _map(rows, [column * width for column in range(columns + 1)], cells, note)


def lag_from_samples(samples: Sequence[Sample], *, origin: float, names: Sequence[str]) -> HeatMap | None:
    """As sampled. `origin`: the due instant on the elapsed clock."""
    seen = [sample for sample in samples if sample.at >= origin - SAMPLE_SECONDS]
    if len(seen) < 2:
        return None
    rows = sorted({*names, *(name for sample in seen for name in sample.lag)}, key=_natural)
    edges = [max(0.0, sample.at - origin) for sample in seen]
    edges.append(edges[-1] + SAMPLE_SECONDS)
    cells: list[list[float | None]] = [[sample.lag.get(name, ABSENT) for sample in seen] for name in rows]
    return _map(rows, edges, cells, "Sampled from GET /shards once a second. A row is one worker's slice.")


def _map(rows: Sequence[str], columns: Sequence[float], cells: Sequence[Sequence[float | None]], note: str) -> HeatMap:
    return HeatMap(
        title="Lag of each shard over time",
        x="time after the due instant (s)",
        y="shard (worker)",
        unit="s of lag",
        rows=rows,
        columns=columns,
        cells=cells,
        nothing="nothing due",
        absent="not reported lately" if any(ABSENT in line for line in cells) else "",
        note=note,
    )


def _name(worker_id: str) -> str:
    return worker_id.rpartition(".")[0]


def _natural(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)
