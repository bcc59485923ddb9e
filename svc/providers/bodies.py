"""The body of a chat-completions request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc.jsontext import JsonObject
from svc.providers.catalog import Provider
from svc.providers.refusals import KEPT, LIMITS
from svc.providers.traits import (
    OBJECT_SCHEMA,
    REASONING_OFF,
    REQUIRE_PARAMETERS,
    UNKNOWN,
    Traits,
)

SCHEMA_NAME = "answers"  # neutral, within the strictest dialect's [A-Za-z0-9_-]{1,64}
LEAST_TOKENS = 16  # some hosted endpoints refuse to be asked for fewer
JSON_SCHEMA, JSON_OBJECT = "json_schema", "json_object"  # types of `response_format`


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One thing to ask of a model, the same for every provider."""

    messages: tuple[Mapping[str, Any], ...]
    max_tokens: int
    logprobs: bool = False
    schema: Mapping[str, Any] | None = None  # JSON schema of the reply
    reply_format: str = JSON_SCHEMA  # how a reply is bound to the schema; empty: by words alone
    think: bool = False  # `max_tokens` already holds the room for it
    deny_data_collection: bool = False  # privacy: strict

    @property
    def words(self) -> Any:
        """All that a provider's error may echo of it."""
        return [self.messages, self.schema]


def build_body(
    provider: Provider, name: str, call: ChatCall, traits: Traits = UNKNOWN
) -> JsonObject:
    """The JSON body for the provider's model `name`, without what the model refuses."""
    body: JsonObject = {
        "model": name,
        "messages": list(call.messages),
        "temperature": 0,
        **_limit(provider, call, traits),
    }
    if call.logprobs:
        body["logprobs"] = True
        most = traits.top_logprobs or provider.top_logprobs
        body["top_logprobs"] = min(most, provider.top_logprobs)
    if call.schema is not None and call.reply_format:
        body["response_format"] = _format(call, traits)
    body.update(_routing(call, traits) if provider.aggregator else provider.extra)
    return {
        field: value
        for field, value in body.items()
        if field in KEPT or field in LIMITS or field not in traits.refused
    }


def _limit(provider: Provider, call: ChatCall, traits: Traits) -> dict[str, int]:
    """The output limit under the provider's usual name, or the other one where that is refused."""
    usual = provider.tokens_field
    other = LIMITS[usual == LIMITS[0]]
    names = [name for name in (usual, other) if name not in traits.refused]
    least = max(1 if provider.local else LEAST_TOKENS, traits.least_tokens)
    limit = max(least, min(call.max_tokens, traits.most_tokens or call.max_tokens))
    return {names[0]: limit} if names else {}


def _format(call: ChatCall, traits: Traits) -> JsonObject:
    if call.reply_format == JSON_SCHEMA:
        bound = {"name": SCHEMA_NAME, "strict": True, "schema": call.schema}
        return {"type": JSON_SCHEMA, "json_schema": bound}
    if OBJECT_SCHEMA in traits.refused:
        return {"type": JSON_OBJECT}
    return {"type": JSON_OBJECT, "schema": call.schema}


def _routing(call: ChatCall, traits: Traits) -> JsonObject:
    """The fields that only the aggregator knows."""
    policy: JsonObject = {"data_collection": "deny" if call.deny_data_collection else "allow"}
    if REQUIRE_PARAMETERS not in traits.refused:
        policy["require_parameters"] = True
    least = "low" if call.think or REASONING_OFF in traits.refused else "none"
    return {"provider": policy, "reasoning": {"effort": least}}
