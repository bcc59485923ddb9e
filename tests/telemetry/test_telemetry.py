"""Which exporters the variables name, and what of a span is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.util.re import parse_env_headers

from svc import limits, telemetry
from svc.errors import RateLimited, SettingsError
from svc.telemetry.handing import HandedTraces
from svc.telemetry.sampling import sampling
from svc.telemetry.sdk import FLUSH_S, Exporting
from svc.tracing import Kind, Span, Trace

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Kept(SpanExporter):
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is held."""


class Hanging(Kept):
    """Takes its time until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.let_go.wait()
        return SpanExportResult.FAILURE


def done(trace: Trace, name: str = "x") -> Span:
    with trace.part(name, Kind.INTERNAL, {}) as span:
        return span


def by(exporter: SpanExporter) -> HandedTraces:
    """Traces that the same process sends."""
    exporting = Exporting([lambda: exporter])
    return HandedTraces(exporting.take, sampling({}), exporting.close)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def traces(kept: Kept) -> Iterator[HandedTraces]:
    made = by(kept)
    yield made
    made.close()


def told(traces: HandedTraces, kept: Kept) -> list[Any]:
    """The spans, in the order of their ends."""
    traces.close()
    return kept.spans


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "otlp"},
        {"OTEL_TRACES_EXPORTER": " OTLP , console"},
        {"OTEL_TRACES_EXPORTER": "otlp_proto_http"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
    ],
)
def test_exporters_that_are_installed_are_no_trouble(environ: dict[str, str]) -> None:
    assert telemetry.trouble(environ) == ""


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "otlp,smoke"},
            "OTEL_TRACES_EXPORTER is 'smoke'; allowed: console, none, otlp, otlp_proto_http",
        ),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'smoke'; allowed: http/protobuf",
        ),
        (
            # Its exporter is a package of its own.
            {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is 'grpc'; allowed: http/protobuf",
        ),
    ],
)
def test_an_exporter_that_is_not_installed_is_named_with_those_that_are(
    environ: dict[str, str], words: str
) -> None:
    assert telemetry.trouble(environ) == words


def test_an_exception_is_told_by_its_type_and_never_by_its_words(
    traces: HandedTraces, kept: Kept
) -> None:
    for error in (ValueError("the secret plan"), RateLimited("the secret plan", 1)):
        with pytest.raises(type(error)), traces.part("x", Kind.INTERNAL, {}):
            raise error
    spans = told(traces, kept)
    assert [span.attributes["error.type"] for span in spans] == ["ValueError", "rate_limited"]
    assert not any(span.events or span.status.description for span in spans)
    assert "secret" not in "".join(span.to_json() for span in spans)


def test_parts_are_below_the_span_that_they_are_parts_of(traces: HandedTraces, kept: Kept) -> None:
    with traces.of(f"00-{TRACE}-{PARENT}-01").part("whole", Kind.SERVER, {}) as whole:
        done(whole, "part")
    done(traces, "other")
    part, outer, other = told(traces, kept)
    assert f"{outer.context.trace_id:032x}" == f"{part.context.trace_id:032x}" == TRACE
    assert f"{outer.parent.span_id:016x}" == PARENT
    assert part.parent.span_id == outer.context.span_id
    assert other.parent is None
    assert (outer.parent.is_remote, part.parent.is_remote) == (True, False)
    assert part.start_time <= part.end_time <= outer.end_time


def test_the_sdks_limits_of_attributes_count(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    traces = by(kept)
    with traces.part("x", Kind.INTERNAL, {"a": 1, "b": "long", "c": True}):
        pass
    (span,) = told(traces, kept)
    assert dict(span.attributes) == {"b": "lon", "c": True}


def test_what_is_done_later_is_a_trace_of_its_own_with_a_link(
    traces: HandedTraces, kept: Kept
) -> None:
    with traces.of(f"00-{TRACE}-{PARENT}-01").part("whole", Kind.SERVER, {}) as whole:
        pass
    with whole.aside().part("later", Kind.INTERNAL, {}) as later:
        done(later, "part")
    outer, part, own = told(traces, kept)
    assert (own.parent, [link.context for link in own.links]) == (None, [outer.context])
    assert own.context.trace_id != outer.context.trace_id
    assert part.parent.span_id == own.context.span_id and not part.links


def test_what_a_caller_does_not_sample_is_left_out_as_a_whole(
    traces: HandedTraces, kept: Kept
) -> None:
    with traces.of(f"00-{TRACE}-{PARENT}-00").part("whole", Kind.SERVER, {}) as whole:
        part = done(whole)
        part.tell({"svc.cached": True})
        assert done(whole.aside()).headers == part.headers
        assert part.headers["traceparent"].startswith(f"00-{TRACE}-")
        assert part.headers["traceparent"].endswith("00")
    assert told(traces, kept) == []


class Busy(Hanging):
    """Takes a processor until it is let go."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        while not self.let_go.is_set():
            pass
        return SpanExportResult.FAILURE


def exported(exporter: SpanExporter) -> Exporting:
    """One span, which is on its way."""
    exporting = Exporting([lambda: exporter], lambda: 0)
    traces = HandedTraces(exporting.take, sampling({}))
    done(traces)
    traces.close()
    return exporting


def test_an_export_that_takes_too_much_of_a_processor_is_seen_while_it_does() -> None:
    busy = Busy()
    exporting = exported(busy)
    give_up_at = time.monotonic() + 60
    try:
        with pytest.raises(SettingsError, match="too much of a processor: see that OTEL_"):
            while time.monotonic() < give_up_at:
                exporting.check()
                time.sleep(0.05)
    finally:
        busy.let_go.set()
        exporting.close()


def test_a_usual_export_takes_no_more_than_it_may(kept: Kept) -> None:
    exporting = exported(kept)
    exporting.close()
    exporting.check()
    assert kept.spans


def test_a_process_with_too_much_memory_is_seen(kept: Kept) -> None:
    taken = [limits.TRACES_BYTES, limits.TRACES_BYTES + 1]
    exporting = Exporting([lambda: kept], lambda: taken.pop(0))
    exporting.check()
    with pytest.raises(SettingsError, match="too much of memory"):
        exporting.check()
    exporting.close()


def test_the_memory_of_this_process_is_told_in_bytes(kept: Kept) -> None:
    many = bytearray(limits.TRACES_BYTES)
    many[::4_096] = b"x" * len(many[::4_096])
    exporting = Exporting([lambda: kept])
    with pytest.raises(SettingsError, match="too much of memory"):
        exporting.check()
    exporting.close()


@pytest.mark.parametrize(
    ("headers", "is_told"),
    [("x-team: rosebud", True), ("x=a,rosebud", True), ("x=rosebud,y=%20b,", False), ("", False)],
)
def test_of_headers_that_are_left_out_the_log_has_the_variable_alone(
    headers: str,
    is_told: bool,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)

    def made() -> SpanExporter:
        # As the SDK's own exporter does.
        parse_env_headers(headers, liberal=True)
        return kept

    Exporting([made]).close()
    assert "rosebud" not in caplog.text
    assert ("OTEL_EXPORTER_OTLP_HEADERS" in caplog.text) is is_told


def test_the_end_waits_a_short_time_for_a_collector_that_hangs() -> None:
    hanging = Hanging()
    traces = by(hanging)
    done(traces)
    began = time.monotonic()
    traces.close()
    assert FLUSH_S <= time.monotonic() - began < FLUSH_S + 5
    hanging.let_go.set()
