"""Spans of OpenTelemetry's SDK, which it sends from a thread of its own.

A collector that is slow or away costs no decision any time: what it does not take waits in a queue
of bounded size, and is dropped when that is full.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from svc import __version__
from svc.errors import ApiError
from svc.logs import Sparingly
from svc.tracing import Attributes, Kind, Trace

# The name of the service where no variable says one.
SERVICE = "svc"

# How long a process that ends waits until its last spans are taken, which is a part of the time
# that its master gives it.
FLUSH_S = 2.0

# They quote what callers sent, or addresses.
_QUOTING = ("opentelemetry.trace", "opentelemetry.exporter")

_KINDS = {
    Kind.SERVER: SpanKind.SERVER,
    Kind.CLIENT: SpanKind.CLIENT,
    Kind.INTERNAL: SpanKind.INTERNAL,
}
_HEADERS = TraceContextTextMapPropagator()

log = logging.getLogger(__name__)


class SdkTraces:
    """Sends the spans of this process; see `svc.tracing.Traces`."""

    def __init__(self, exporters: Iterable[Callable[[], SpanExporter]]) -> None:
        """Start the SDK's threads. Raises what the SDK does for variables that it does not take."""
        for name in _QUOTING:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        made = [Reporting(make()) for make in exporters]
        # The end of the process is told by `close`.
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        for exporter in made:
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE, __version__)
        self._root = SdkTrace(self._tracer, Context())

    def part(self, name: str, kind: Kind, attributes: Attributes) -> SdkSpan:
        """See `Trace`; it begins a trace."""
        return self._root.part(name, kind, attributes)

    def of(self, traceparent: str) -> Trace:
        """See `Traces`. A header that is malformed says nothing."""
        if not traceparent:
            return self._root
        return SdkTrace(self._tracer, _HEADERS.extract({"traceparent": traceparent}, Context()))

    def close(self) -> None:
        """See `Traces`."""
        # The SDK's own way to end may take half a minute where the collector is silent.
        ending = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(FLUSH_S)


class SdkTrace:
    """See `svc.tracing.Trace`; a context holds the span that parts are below."""

    __slots__ = ("_context", "_links", "_tracer")

    def __init__(self, tracer: Tracer, context: Context, links: Sequence[Link] = ()) -> None:
        self._tracer, self._context, self._links = tracer, context, links

    def part(self, name: str, kind: Kind, attributes: Attributes) -> SdkSpan:
        span = self._tracer.start_span(
            name, self._context, _KINDS[kind], attributes, links=self._links
        )
        return SdkSpan(self._tracer, span)


class SdkSpan:
    """See `svc.tracing.Span`."""

    __slots__ = ("_context", "_span", "_tracer")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer, self._span = tracer, span
        self._context = set_span_in_context(span, Context())

    def __enter__(self) -> SdkSpan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            # The SDK's own way would record the message and the traceback, which may quote a state.
            name = error.type if isinstance(error, ApiError) else kind.__name__
            self._span.set_attribute("error.type", name)
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    @property
    def headers(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        _HEADERS.inject(carrier, self._context)
        return carrier

    def part(self, name: str, kind: Kind, attributes: Attributes) -> SdkSpan:
        if not self._span.is_recording():
            # What a sampler leaves out it leaves out as a whole; this says and ends nothing.
            return self
        return SdkTrace(self._tracer, self._context).part(name, kind, attributes)

    def aside(self) -> Trace:
        own = self._span.get_span_context()
        if not own.trace_flags.sampled:
            return self
        return SdkTrace(self._tracer, Context(), [Link(own)])

    def tell(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)


class Reporting(SpanExporter):
    """Hands spans to another exporter, and says now and then that they were lost."""

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


def _resource() -> Resource:
    """What the variables say of this service, with a name in any case."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: SERVICE}))
    return resource
