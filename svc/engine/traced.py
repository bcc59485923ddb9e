"""Records spans of decisions, of their commits and of calls to models.

docs/traces.md lists every span and attribute. The attributes of calls have the names of
OpenTelemetry's semantic conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from svc.deadline import Deadline
from svc.engine.decide import Engine, Keep
from svc.providers import (
    CHAT,
    NO_CORRECTIONS,
    ChatCall,
    Client,
    Completion,
    Corrections,
    DecisionCall,
    Provider,
)
from svc.records import Decision, Model
from svc.schemas import DecisionRequest
from svc.tracing import Attributes, Kind, Span, Trace

_COMMIT: Attributes = {"db.system.name": "sqlite", "db.operation.name": "COMMIT"}

# The conventions' names of providers, where these differ from ours.
_CONVENTION_NAMES = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}


class TracedEngine(Engine):
    """An engine that records each decision as a span, in the trace of its deadline."""

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        *caller: Any,
        keep: Keep | None = None,
        job: int | None = None,
        **shown: Any,
    ) -> Decision:
        """See `Engine.decide`."""
        make, trace = partial(super().decide, request, deadline, *caller, **shown), deadline.trace
        if trace is None:
            return make(keep=keep, job=job)

        def decide(span: Span) -> Decision:
            decision = make(keep=partial(_committed, span, keep or self._journal.add), job=job)
            span.tell({"svc.decision.id": decision.id, **_decision_attributes(decision)})
            deadline.later = span.aside()
            return decision

        kind = Kind.SERVER if job is None else Kind.INTERNAL
        return _within_span(trace, deadline, request, "decide", kind, decide)


def challenge(
    decide: Callable[[DecisionRequest, Deadline, str], Decision],
    request: DecisionRequest,
    deadline: Deadline,
    caller: str,
) -> Decision:
    """Have a challenger `decide`, and record that as a span in the trace of its deadline."""
    trace, make = deadline.trace, partial(decide, request, deadline, caller)
    if trace is None:
        return make()

    def told(span: Span) -> Decision:
        decision = make()
        span.tell(_decision_attributes(decision))
        return decision

    return _within_span(trace, deadline, request, "challenge", Kind.INTERNAL, told)


def _within_span(
    trace: Trace,
    deadline: Deadline,
    request: DecisionRequest,
    name: str,
    kind: Kind,
    decide: Callable[[Span], Decision],
) -> Decision:
    """Decide within a span, which is the deadline's trace meanwhile, so that calls are below it."""
    with trace.part(name, kind, {"svc.questions": len(request.questions)}) as span:
        deadline.trace = span
        try:
            return decide(span)
        finally:
            deadline.trace = trace


class TracedClient:
    """A client that records each call as a span, in the trace of its deadline."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(
        self,
        model: Model,
        call: ChatCall | DecisionCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> Completion:
        """See `Client.call`; the header `traceparent` names the span to the provider."""
        trace = None if deadline is None else deadline.trace
        if trace is None:
            return self._client.call(model, call, timeout_s, key, deadline, corrections)
        facts = _request_attributes(self._client.provider(model), model)
        name = f"{facts['gen_ai.operation.name']} {model.name}"
        with trace.part(name, Kind.CLIENT, facts) as span:
            headers = span.headers
            completion = self._client.call(
                model, call, timeout_s, key, deadline, corrections, headers
            )
            span.tell(_response_attributes(completion))
        return completion


def _committed(span: Span, keep: Keep, decision: Decision) -> str:
    """Store a decision within a span, which ends when it is durable."""
    with span.part("commit", Kind.CLIENT, _COMMIT):
        return keep(decision)


def _decision_attributes(decision: Decision) -> Attributes:
    return {
        "svc.project": decision.project,
        "svc.model": decision.model,
        "svc.mode": decision.mode,
        "svc.config": decision.config,
        "svc.cached": decision.cached,
        "svc.debiased": decision.debiased,
        "svc.cost_usd": decision.cost_usd,
    }


def _request_attributes(provider: Provider, model: Model) -> Attributes:
    return {
        # The conventions have no name for what a decision server does.
        "gen_ai.operation.name": "chat" if provider.kind == CHAT else "decide",
        "gen_ai.provider.name": _CONVENTION_NAMES.get(provider.name, provider.name),
        "gen_ai.request.model": model.name,
    }


def _response_attributes(completion: Completion) -> Attributes:
    used: dict[str, str | int] = {
        "gen_ai.usage.input_tokens": completion.input_tokens,
        "gen_ai.usage.output_tokens": completion.output_tokens,
    }
    if completion.served_by:
        # The fingerprint of the system may follow, after a blank.
        used["gen_ai.response.model"] = completion.served_by.partition(" ")[0]
    return used
