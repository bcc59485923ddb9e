"""The rule of samplers is the SDK's."""

from __future__ import annotations

import itertools
import random

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from svc.telemetry.sampling import ARGUMENT, SAMPLED, SAMPLER, sampling

NAMES = ("always_on", "always_off", "traceidratio")
VARIABLES = [
    {},
    {SAMPLER: "smoke"},
    *({SAMPLER: name} for name in (*NAMES, "ALWAYS_OFF", *(f"parentbased_{n}" for n in NAMES))),
    *(
        {SAMPLER: name, ARGUMENT: ratio}
        for name in ("traceidratio", "parentbased_traceidratio", "always_on")
        for ratio in ("0", "0.1", "1", "1e-3", "2", "-1", "nan", "some")
    ),
]
CALLERS = (None, 0, SAMPLED, 2, 3)


@pytest.mark.parametrize("variables", VARIABLES, ids=str)
def test_what_is_sampled_is_what_the_sdk_samples(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (SAMPLER, ARGUMENT):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    own, theirs = sampling(variables), TracerProvider(shutdown_on_exit=False).sampler
    edges = (1, own.bound - 1, own.bound, (1 << 64) - 1, (1 << 128) - 1)
    draw = random.Random(1)
    ids = [draw.getrandbits(128) for _ in range(50)] + [one for one in edges if one > 0]
    for trace, flags in itertools.product(ids, CALLERS):
        if flags is None:
            context, taken = Context(), own.takes(trace)
        else:
            caller = SpanContext(trace, 1, is_remote=True, trace_flags=TraceFlags(flags))
            context = set_span_in_context(NonRecordingSpan(caller), Context())
            taken = own.takes_below(trace, flags)
        assert taken == theirs.should_sample(context, trace, "x").decision.is_sampled()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {SAMPLER: "smoke"},
            "SAMPLER is 'smoke', which counts as parentbased_always_on; ",
        ),
        ({SAMPLER: "traceidratio"}, "OTEL_TRACES_SAMPLER_ARG is '', which counts as 1.0"),
    ],
)
def test_what_a_variable_says_wrongly_is_told(
    variables: dict[str, str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    sampling(variables)
    assert words in caplog.text


def test_an_empty_variable_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert sampling({SAMPLER: ""}) == sampling({})
    assert not caplog.records
