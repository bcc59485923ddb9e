"""The body of a chat-completions request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc.jsontext import JsonObject
from svc.providers.catalog import Provider
from svc.providers.protocol import addresses_of, bytes_of
from svc.providers.refusals import KEPT, LIMITS
from svc.providers.traits import (
    OBJECT_SCHEMA,
    REASONING_OFF,
    REQUIRE_PARAMETERS,
    UNKNOWN,
    Traits,
)

# The strictest provider allows [A-Za-z0-9_-]{1,64}, and the name must give models no hint.
SCHEMA_NAME = "answers"

# Some hosted endpoints refuse a lower output limit.
LEAST_TOKENS = 16

# The types of `response_format`.
JSON_SCHEMA, JSON_OBJECT = "json_schema", "json_object"


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One thing to ask of a model, the same for every provider.

    `schema` is the JSON schema of the reply, and `reply_format` says how the reply is bound to it:
    by words alone where it is empty. `max_tokens` already includes the tokens for thought where
    `think` is set. `deny_data_collection` stands for `privacy: strict`.
    """

    messages: tuple[Mapping[str, Any], ...]
    max_tokens: int
    logprobs: bool = False
    schema: Mapping[str, Any] | None = None
    reply_format: str = JSON_SCHEMA
    think: bool = False
    deny_data_collection: bool = False

    @property
    def words(self) -> Any:
        """All parts of the call that a provider's error may echo."""
        return [[_words(message["content"]) for message in self.messages], self.schema]

    @property
    def size(self) -> int:
        """About how many bytes the messages have."""
        return sum(_size(message["content"]) for message in self.messages)

    @property
    def images(self) -> tuple[str, ...]:
        """The images of the messages, as addresses and data URIs."""
        return tuple(url for message in self.messages for url in _images(message["content"]))


def _words(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return [content]
    texts = [part["text"] for part in content if part["type"] == "text"]
    return [*texts, *addresses_of(_images(content))]


def _images(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return []
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def _size(content: str | Sequence[Mapping[str, Any]]) -> int:
    if isinstance(content, str):
        return bytes_of(content)
    return sum(bytes_of(part.get("text") or part["image_url"]["url"]) for part in content)


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


def output_limit(provider: Provider, call: ChatCall, traits: Traits = UNKNOWN) -> int | None:
    """The tokens that the model is allowed, None where it refuses every limit."""
    if traits.refused.issuperset(LIMITS):
        return None
    least = max(1 if provider.local else LEAST_TOKENS, traits.least_tokens)
    return max(least, min(call.max_tokens, traits.most_tokens or call.max_tokens))


def _limit(provider: Provider, call: ChatCall, traits: Traits) -> dict[str, int]:
    """The output limit under the provider's usual name, or the other one where that is refused."""
    limit, usual = output_limit(provider, call, traits), provider.tokens_field
    if limit is None:
        return {}
    return {LIMITS[usual == LIMITS[0]] if usual in traits.refused else usual: limit}


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
