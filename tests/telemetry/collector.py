"""A collector of traces on loopback: it takes what OTLP/HTTP exporters send, and decodes it.

with Collector() as collector:
    ...  # collector.settings are the variables that name it
    collector.spans()
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_S = 20.0  # seconds for spans to come, on a busy machine
LOOK_S = 0.02  # seconds between two looks


@dataclass(frozen=True)
class Told:
    """One span as it arrived; ids in hexadecimal digits, times in seconds."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    began: float
    ended: float
    resource: dict[str, Any]
    links: list[str]


class Collector:
    """A context manager that listens inside of the block."""

    def __init__(self, respond: Callable[[], int] = lambda: 200) -> None:
        """`respond` gives the status of each reply."""
        # The bodies as they came, for what must not be in them.
        self.bodies: list[bytes] = []
        self._spans: list[Told] = []
        self._lock = threading.Lock()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                status = respond()
                if status == 200:
                    collector.take(data)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector")

    @property
    def settings(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, data: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(data)
        with self._lock:
            self.bodies.append(data)
            for resource in request.resource_spans:
                facts = values(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self._spans += [told(span, facts) for span in scope.spans]

    def spans(self, name: str = "", least: int = 0) -> list[Told]:
        """The spans whose names begin so, once there are so many; in the order of their starts."""
        give_up_at = time.monotonic() + WAIT_S
        while True:
            with self._lock:
                found = [span for span in self._spans if span.name.startswith(name)]
            if len(found) >= least:
                return sorted(found, key=lambda span: span.began)
            assert time.monotonic() < give_up_at, f"{len(found)} of {least} spans {name!r}"
            time.sleep(LOOK_S)


def told(span: Any, resource: dict[str, Any]) -> Told:
    assert not span.events, "events may hold messages of exceptions"
    assert not span.status.message
    return Told(
        name=span.name,
        kind=span.kind,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=values(span.attributes),
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
        began=span.start_time_unix_nano / 1e9,
        ended=span.end_time_unix_nano / 1e9,
        resource=resource,
        links=[link.span_id.hex() for link in span.links],
    )


def values(attributes: Sequence[Any]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
