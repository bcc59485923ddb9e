"""What traces are told: of decisions, of their commits and of calls to models.

docs/traces.md names everything that is told. The attributes of calls have the names of
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

# The conventions' names of providers, where they are not ours.
_CONVENTIONAL = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}


class TracedEngine(Engine):
    """Tells of decisions in the traces of their deadlines."""

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
            span.tell({"svc.decision.id": decision.id, **_decided(decision)})
            deadline.later = span.aside()
            return decision

        kind = Kind.SERVER if job is None else Kind.INTERNAL
        return _told(trace, deadline, request, "decide", kind, decide)


def challenge(
    decide: Callable[[DecisionRequest, Deadline, str], Decision],
    request: DecisionRequest,
    deadline: Deadline,
    caller: str,
) -> Decision:
    """Have a challenger `decide`, and tell of it in the trace of its deadline."""
    trace, make = deadline.trace, partial(decide, request, deadline, caller)
    if trace is None:
        return make()

    def told(span: Span) -> Decision:
        decision = make()
        span.tell(_decided(decision))
        return decision

    return _told(trace, deadline, request, "challenge", Kind.INTERNAL, told)


def _told(
    trace: Trace,
    deadline: Deadline,
    request: DecisionRequest,
    name: str,
    kind: Kind,
    decide: Callable[[Span], Decision],
) -> Decision:
    """Decide, and tell of it; what is done under the deadline meanwhile goes below its span."""
    with trace.part(name, kind, {"svc.questions": len(request.questions)}) as span:
        deadline.trace = span
        try:
            return decide(span)
        finally:
            deadline.trace = trace


class TracedClient:
    """Makes the calls of a client, and tells of them in the traces of their deadlines."""

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
        """See `Client.call`; the provider is told of the span by the header `traceparent`."""
        trace = None if deadline is None else deadline.trace
        if trace is None:
            return self._client.call(model, call, timeout_s, key, deadline, corrections)
        facts = _asked(self._client.provider(model), model)
        name = f"{facts['gen_ai.operation.name']} {model.name}"
        with trace.part(name, Kind.CLIENT, facts) as span:
            headers = span.headers
            completion = self._client.call(
                model, call, timeout_s, key, deadline, corrections, headers
            )
            span.tell(_answered(completion))
        return completion


def _committed(span: Span, keep: Keep, decision: Decision) -> str:
    """Store a decision; the span ends when it is durable."""
    with span.part("commit", Kind.CLIENT, _COMMIT):
        return keep(decision)


def _decided(decision: Decision) -> Attributes:
    return {
        "svc.project": decision.project,
        "svc.model": decision.model,
        "svc.mode": decision.mode,
        "svc.config": decision.config,
        "svc.cached": decision.cached,
        "svc.debiased": decision.debiased,
        "svc.cost_usd": decision.cost_usd,
    }


def _asked(provider: Provider, model: Model) -> Attributes:
    return {
        # What a decision server does has no name in the conventions.
        "gen_ai.operation.name": "chat" if provider.kind == CHAT else "decide",
        "gen_ai.provider.name": _CONVENTIONAL.get(provider.name, provider.name),
        "gen_ai.request.model": model.name,
    }


def _answered(completion: Completion) -> Attributes:
    used: dict[str, str | int] = {
        "gen_ai.usage.input_tokens": completion.input_tokens,
        "gen_ai.usage.output_tokens": completion.output_tokens,
    }
    if completion.served_by:
        # Behind a blank stands the system's fingerprint.
        used["gen_ai.response.model"] = completion.served_by.partition(" ")[0]
    return used
