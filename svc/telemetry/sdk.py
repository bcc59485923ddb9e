"""Exports spans with OpenTelemetry's SDK, which does so in threads of its own.

A collector that is slow or absent holds nothing up: spans wait for it in a bounded queue, and are
dropped where that is full.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.re import parse_env_headers

from svc import __version__, limits
from svc.errors import SettingsError
from svc.logs import Sparingly
from svc.meter import Meter, SpareOfPeer
from svc.telemetry.spans import Ended, Record

# The name of the service where no variable says one.
SERVICE = "svc"

# How long a process that ends waits for its last spans to be exported, in seconds, within the time
# that its master gives it to end.
FLUSH_S = 2.0

# The logger above those whose messages may quote what callers sent, addresses, and keys in
# variables.
_QUOTING = "opentelemetry"

# The variables with headers for the collector, the first of which is for traces alone.
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")

# How many bytes the unit has in which the system tells a process's memory, see getrusage(2).
_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024

_SCOPE = InstrumentationScope(SERVICE, __version__)
_UNSET, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)

log = logging.getLogger(__name__)


def _memory() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MEMORY_UNIT


class Exporting:
    """Turns records into OpenTelemetry's spans, and exports these."""

    def __init__(
        self,
        exporters: Iterable[Callable[[], SpanExporter]],
        memory: Callable[[], int] = _memory,
    ) -> None:
        """Start the SDK's threads. `memory` is what the process has had of it at most, in bytes.

        Raises what the SDK raises for variables that are invalid.
        """
        self._memory = memory
        logging.getLogger(_QUOTING).setLevel(logging.CRITICAL)
        _check_headers(os.environ)
        self._resource, self._limits = _resource(), SpanLimits()
        self._exporters = [Reporting(make()) for make in exporters]
        self._processors = [BatchSpanProcessor(exporter) for exporter in self._exporters]

    def take(self, records: Sequence[Record]) -> bool:
        """Queue spans for export; always True, since those that find no room are dropped."""
        for record in records:
            span = self._span(Ended(*record))
            for processor in self._processors:
                processor.on_end(span)
        return True

    def check(self) -> None:
        """Raise `SettingsError` where exports take too much of a processor, or the process memory.

        What a collector answers is read by the exporter, in ways that only its process's end ends.
        """
        is_busy = any(exporter.is_busy() for exporter in self._exporters)
        if is_busy or self._memory() > limits.TRACES_BYTES:
            what = "a processor" if is_busy else "memory"
            raise SettingsError(
                f"what the collector answers takes too much of {what}: see that "
                "OTEL_EXPORTER_OTLP_ENDPOINT is its address, who answers there, and that "
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE is no more than usual"
            )

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
        usual_s, most_s = limits.EXPORT_PROCESSOR_S, limits.EXPORTS_PROCESSOR_S
        self._spare = SpareOfPeer(usual_s, most_s, limits.EXPORTS_PROCESSOR_BACK)
        self._meter: Meter | None = None

    def is_busy(self) -> bool:
        """Whether its exports, one under way included, take more of a processor than they may."""
        if self._meter is not None:
            self._meter.look()
        return not self._spare.has_left()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spare.begin()
        self._meter = Meter(self._spare.use, self._spare.has_left, with_collections=False)
        self._meter.go_on()
        try:
            result = self._exporter.export(spans)
        finally:
            self._meter.pause()
        if result is not SpanExportResult.SUCCESS and self._lines.take():
            log.warning("%d spans of traces could not be sent, and are lost", len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _check_headers(environ: Mapping[str, str]) -> None:
    """Say which variable has headers that the exporter leaves out, without what is in it."""
    for variable in _HEADERS:
        given = [part for part in environ.get(variable, "").split(",") if part.strip()]
        if any(not parse_env_headers(part, liberal=True) for part in given):
            log.warning("%s: what is not written as name=value is left out", variable)


def _context(trace: int, span: int, flags: int, remote: bool = False) -> SpanContext:
    return SpanContext(trace, span, is_remote=remote, trace_flags=TraceFlags(flags))


def _resource() -> Resource:
    """What the variables say of this service, named `SERVICE` where they give no name."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: SERVICE}))
    return resource
