"""The body of a chat-completions request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc.providers.catalog import Provider
from svc.providers.quirks import REQUIRE_PARAMETERS

SCHEMA_NAME = "answers"  # neutral, within the strictest dialect's [A-Za-z0-9_-]{1,64}
LEAST_TOKENS = 16  # some endpoints refuse to be asked for fewer
# Never left out: without its policy a strict request would reach providers that store prompts.
KEPT = frozenset({"model", "messages", "provider"})
_TOKENS_FIELDS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One thing to ask of a model, the same for every provider."""

    messages: tuple[Mapping[str, Any], ...]
    max_tokens: int
    logprobs: bool = False
    schema: Mapping[str, Any] | None = None  # JSON schema in the strict dialect
    think: bool = False  # `max_tokens` already holds the room for it
    deny_data_collection: bool = False  # privacy: strict


def build_body(
    provider: Provider, name: str, call: ChatCall, refused: frozenset[str]
) -> dict[str, Any]:
    """The JSON body for the provider's model `name`, without the parameters it refuses."""
    body: dict[str, Any] = {
        "model": name,
        "messages": list(call.messages),
        "temperature": 0,
        **_tokens(provider, call, refused),
    }
    if call.logprobs:
        body["logprobs"] = True
        body["top_logprobs"] = provider.top_logprobs
    if call.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": SCHEMA_NAME, "strict": True, "schema": call.schema},
        }
    body.update(_routing(call, refused) if provider.aggregator else provider.extra)
    return {field: value for field, value in body.items() if field in KEPT or field not in refused}


def _tokens(provider: Provider, call: ChatCall, refused: frozenset[str]) -> dict[str, int]:
    """The limit under the provider's usual name, or the other one where that is refused."""
    usual = provider.tokens_field
    other = _TOKENS_FIELDS[usual == _TOKENS_FIELDS[0]]
    return {other if usual in refused else usual: max(LEAST_TOKENS, call.max_tokens)}


def _routing(call: ChatCall, refused: frozenset[str]) -> dict[str, Any]:
    """The fields that only the aggregator knows."""
    policy: dict[str, Any] = {"data_collection": "deny" if call.deny_data_collection else "allow"}
    if REQUIRE_PARAMETERS not in refused:
        policy["require_parameters"] = True
    return {
        "provider": policy,
        "reasoning": {"effort": "low" if call.think else "none"},
    }
