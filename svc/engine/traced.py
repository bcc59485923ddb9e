"""What traces are told: of decisions, of their commits and of calls to models.

docs/traces.md names everything that is told. The attributes of calls have the names of
OpenTelemetry's semantic conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

from functools import partial

from svc.deadline import Deadline
from svc.engine.decide import Engine, Keep, Present, as_it_is
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
from svc.tracing import Attributes, Kind, Span

_COMMIT: Attributes = {"db.system.name": "sqlite", "db.operation.name": "COMMIT"}

# The conventions' names of providers, where they are not ours.
_CONVENTIONAL = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}


class TracedEngine(Engine):
    """Tells of decisions in the traces of their deadlines."""

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        present: Present = as_it_is,
        keep: Keep | None = None,
        job: int | None = None,
    ) -> Decision:
        """See `Engine.decide`."""
        trace = deadline.trace
        if trace is None:
            return super().decide(request, deadline, api_key, present, keep, job)
        kind = Kind.SERVER if job is None else Kind.INTERNAL
        with trace.part("decide", kind, {"svc.questions": len(request.questions)}) as span:
            deadline.trace = span
            try:
                told = partial(_committed, span, keep or self._journal.add)
                decision = super().decide(request, deadline, api_key, present, told, job)
            finally:
                deadline.trace = trace
            span.tell({"svc.decision.id": decision.id, **_decided(decision)})
            deadline.later = span.aside()
        return decision


class TracedChallenger(Engine):
    """Tells of what challengers are asked in the traces of the deadlines."""

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        present: Present = as_it_is,
        keep: Keep | None = None,
        job: int | None = None,
    ) -> Decision:
        """See `Engine.decide`."""
        trace = deadline.trace
        if trace is None:
            return super().decide(request, deadline, api_key, present, keep, job)
        facts = {"svc.questions": len(request.questions)}
        with trace.part("challenge", Kind.INTERNAL, facts) as span:
            deadline.trace = span
            decision = super().decide(request, deadline, api_key, present, keep, job)
            span.tell(_decided(decision))
        return decision


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
