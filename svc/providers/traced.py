"""Calls to models as spans of traces.

Their attributes have the names of OpenTelemetry's semantic conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

from svc.deadline import Deadline
from svc.providers.bodies import ChatCall
from svc.providers.catalog import CHAT, Provider
from svc.providers.client import Client
from svc.providers.protocol import DecisionCall
from svc.providers.replies import Completion
from svc.providers.traits import NO_CORRECTIONS, Corrections
from svc.records import Model
from svc.tracing import Attributes, Kind

# The conventions' names of providers, where they are not ours.
_CONVENTIONAL = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}


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
        facts = _facts(self._client.provider(model), model)
        name = f"{facts['gen_ai.operation.name']} {model.name}"
        with trace.part(name, Kind.CLIENT, facts) as span:
            completion = self._client.call(
                model, call, timeout_s, key, deadline, corrections, span.headers
            )
            span.tell(_used(completion))
        return completion


def _facts(provider: Provider, model: Model) -> Attributes:
    return {
        # A decision server does nothing for which the conventions have a name.
        "gen_ai.operation.name": "chat" if provider.kind == CHAT else "decide",
        "gen_ai.provider.name": _CONVENTIONAL.get(provider.name, provider.name),
        "gen_ai.request.model": model.name,
    }


def _used(completion: Completion) -> Attributes:
    used: dict[str, str | int] = {
        "gen_ai.usage.input_tokens": completion.input_tokens,
        "gen_ai.usage.output_tokens": completion.output_tokens,
    }
    if completion.served_by:
        # Behind a blank stands the system's fingerprint.
        used["gen_ai.response.model"] = completion.served_by.partition(" ")[0]
    return used
