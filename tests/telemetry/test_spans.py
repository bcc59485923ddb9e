"""What spans are before they become those of OpenTelemetry."""

from __future__ import annotations

import marshal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.context import Context
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from svc.telemetry.sampling import Sampling
from svc.telemetry.spans import Ended, OwnSpan, OwnTraces
from svc.tracing import Kind

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ALL, NONE = Sampling(1 << 64, follows=True), Sampling(0, follows=True)
PROPAGATOR = TraceContextTextMapPropagator()


def begun(header: str) -> Ended:
    """The span of a request with that header."""
    ended: list[OwnSpan] = []
    traces = OwnTraces(ended.append, Sampling(1 << 64, follows=False))
    with traces.of(header).part("x", Kind.SERVER, {}):
        pass
    return Ended(*ended[0].record())


HEADERS = st.one_of(
    st.text(max_size=70),
    st.from_regex(r"[ \t]*[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?[ \t]*"),
    st.builds(
        "-".join,
        st.tuples(
            st.sampled_from(["00", "01", "ff", "0", " 00"]),
            st.sampled_from([TRACE, "0" * 32, TRACE.upper(), TRACE[1:]]),
            st.sampled_from([PARENT, "0" * 16]),
            st.sampled_from(["00", "01", "03", "1", "01 ", "01-more", "01\n", "\u0660\u0661"]),
        ),
    ),
)


@given(HEADERS)
def test_a_header_says_what_it_says_to_the_sdk(header: str) -> None:
    told = PROPAGATOR.extract({"traceparent": header.removesuffix("\n")}, Context())
    theirs, span = get_current_span(told).get_span_context(), begun(header.removesuffix("\n"))
    if theirs.is_valid:
        assert (span.trace, span.parent, span.remote) == (theirs.trace_id, theirs.span_id, True)
    else:
        assert (span.parent, span.remote) == (0, False)


def test_an_endless_header_is_not_looked_at() -> None:
    assert begun(f"01-{TRACE}-{PARENT}-01-" + "a" * 600).parent == 0


@pytest.mark.parametrize(("flags", "sent"), [("01", "01"), ("03", "03"), ("ff", "03")])
def test_what_a_header_says_of_its_trace_is_passed_on(flags: str, sent: str) -> None:
    traces = OwnTraces([].append, ALL)
    with traces.of(f"00-{TRACE}-{PARENT}-{flags}").part("x", Kind.SERVER, {}) as span:
        assert span.headers["traceparent"].startswith(f"00-{TRACE}-")
        assert span.headers["traceparent"].endswith(f"-{sent}")


def test_ids_are_never_used_again() -> None:
    ended: list[OwnSpan] = []
    traces = OwnTraces(ended.append, ALL)
    for _ in range(1_000):
        with traces.part("x", Kind.SERVER, {}) as span, span.part("y", Kind.CLIENT, {}):
            pass
    assert len({Ended(*one.record()).id for one in ended}) == 2_000
    assert len({Ended(*one.record()).trace for one in ended}) == 1_000


def test_a_record_goes_through_the_line_as_it_is() -> None:
    ended: list[OwnSpan] = []
    facts = {"a": "text", "b": 1, "c": 0.5, "d": True}
    with (
        OwnTraces(ended.append, ALL).part("x", Kind.SERVER, facts) as span,
        pytest.raises(ValueError, match="secret"),
        span.part("y", Kind.CLIENT, {}),
    ):
        raise ValueError("the secret plan")
    records = [span.record() for span in ended]
    assert marshal.loads(marshal.dumps(records)) == records
    assert "secret" not in str(records)
    part, whole = (Ended(*one) for one in records)
    assert (part.failed, part.attributes) == (True, {"error.type": "ValueError"})
    assert (whole.failed, whole.attributes) == (False, facts)


def test_what_a_span_is_told_does_not_change_what_it_was_made_with() -> None:
    facts = {"a": 1}
    with OwnTraces([].append, ALL).part("x", Kind.SERVER, facts) as span:
        span.tell({"b": 2})
    assert facts == {"a": 1}


def test_what_is_not_sampled_is_left_out_but_for_its_ids() -> None:
    ended: list[OwnSpan] = []
    with OwnTraces(ended.append, NONE).part("x", Kind.SERVER, {}) as span:
        parts = (span.part("y", Kind.CLIENT, {}), span.aside().part("z", Kind.INTERNAL, {}))
        for part in parts:
            with part:
                part.tell({"a": 1})
    headers = {one.headers["traceparent"] for one in (span, *parts)}
    assert len(headers) == 1 and headers.pop().endswith("-02")
    assert ended == []
