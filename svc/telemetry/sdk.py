"""Exports spans with OpenTelemetry's SDK, which does so in threads of its own.

A collector that is slow or absent holds nothing up: spans wait for it in a bounded queue, and are
dropped where that is full.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from svc import __version__
from svc.logs import Sparingly
from svc.telemetry.spans import Ended, Record

# The name of the service where no variable says one.
SERVICE = "svc"

# How long a process that ends waits for its last spans to be exported, in seconds, within the time
# that its master gives it to end.
FLUSH_S = 2.0

# Loggers whose messages may quote what callers sent, or addresses.
_QUOTING = ("opentelemetry.trace", "opentelemetry.exporter")

_SCOPE = InstrumentationScope(SERVICE, __version__)
_UNSET, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)

log = logging.getLogger(__name__)


class Exporting:
    """Turns records into OpenTelemetry's spans, and exports these."""

    def __init__(self, exporters: Iterable[Callable[[], SpanExporter]]) -> None:
        """Start the SDK's threads. Raises what the SDK raises for variables that are invalid."""
        for name in _QUOTING:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._resource, self._limits = _resource(), SpanLimits()
        made = [Reporting(make()) for make in exporters]
        self._processors = [BatchSpanProcessor(exporter) for exporter in made]

    def take(self, records: Sequence[Record]) -> bool:
        """Queue spans for export; always True, since those that find no room are dropped."""
        for record in records:
            span = self._span(Ended(*record))
            for processor in self._processors:
                processor.on_end(span)
        return True

    def close(self) -> None:
        """Export what is queued, for `FLUSH_S` at most."""
        # The SDK's own shutdown may wait for half a minute where the collector is silent.
        ending = threading.Thread(target=self._shut_down, name="traces-end", daemon=True)
        ending.start()
        ending.join(FLUSH_S)

    def _shut_down(self) -> None:
        for processor in self._processors:
            processor.shutdown()  # type: ignore[no-untyped-call]

    def _span(self, ended: Ended) -> ReadableSpan:
        own = _context(ended.trace, ended.id, ended.flags)
        above = _context(ended.trace, ended.parent, ended.flags, ended.remote)
        most, longest = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        return ReadableSpan(
            ended.name,
            own,
            parent=above if ended.parent else None,
            resource=self._resource,
            attributes=BoundedAttributes(most, ended.attributes, max_value_len=longest),
            links=[Link(_context(*ended.linked))] if ended.linked else (),
            kind=SpanKind[ended.kind],
            status=_FAILED if ended.failed else _UNSET,
            start_time=ended.began,
            end_time=ended.ended,
            instrumentation_scope=_SCOPE,
        )


class Reporting(SpanExporter):
    """Hands spans to another exporter, and logs when it loses some, once a minute at most."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lines = Sparingly(1)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS and self._lines.take():
            log.warning("%d spans of traces could not be sent, and are lost", len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _context(trace: int, span: int, flags: int, remote: bool = False) -> SpanContext:
    return SpanContext(trace, span, is_remote=remote, trace_flags=TraceFlags(flags))


def _resource() -> Resource:
    """What the variables say of this service, named `SERVICE` where they give no name."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: SERVICE}))
    return resource
