"""A caller's trace, a run's own, and the target's: by a real worker, a real exporter and an HTTP server."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.acceptance.conftest import Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Server(ThreadingHTTPServer):
    """Both the target of jobs (/target) and the collector of traces (/v1/traces)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.parents: list[str | None] = []
        self.spans: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/v1/traces":
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans += scope.spans
        else:
            self.server.parents.append(self.headers.get("traceparent"))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_each_run_is_a_trace_linked_to_the_callers_and_its_target_is_a_child(
    cluster: Cluster, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
    worker = cluster.worker(traces="true", http_allow=("127.0.0.0/8",))
    body = {"runAt": instant(0), "handler": "http", "payload": {"url": f"{server.url}/target", "method": "POST"}}
    status, job = cluster.api.call("POST", "/jobs", body, headers={"traceparent": CALLER})
    assert status == 201
    cluster.ended_runs(job["jobId"], 1)
    worker.terminate()
    assert worker.wait() == 0
    until_sync(lambda: server.spans, seconds=10, what="the worker has exported what it had when it ended")
    (span,) = server.spans
    (link,) = span.links
    assert f"00-{link.trace_id.hex()}-{link.span_id.hex()}-01" == CALLER
    assert (span.name, span.parent_span_id) == ("run http", b"")
    (parent,) = server.parents
    assert (parent or "").startswith(f"00-{span.trace_id.hex()}-{span.span_id.hex()}-")
