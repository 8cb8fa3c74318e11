"""What a worker takes is what it can start."""

from __future__ import annotations

import psycopg
import pytest

from tests.acceptance.conftest import Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]


def test_a_worker_claims_no_more_than_it_can_start(cluster: Cluster) -> None:
    """L17: what waited in a worker would wait for its whole lease if that worker died."""
    for _ in range(8):
        cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 60})
    worker = cluster.worker(concurrency=2)

    until_sync(lambda: len(cluster.witness("begin")) == 2, seconds=30)

    with psycopg.connect(cluster.database_url, autocommit=True) as connection:
        states = dict(connection.execute("select state, count(*) from jobs group by state").fetchall())
    assert states == {"claimed": 2, "due": 6}
    worker.kill()
