"""Chat completions: the protocol of nearly every provider, and the default."""

from __future__ import annotations

from typing import Any

from svc.jsontext import JsonObject
from svc.providers.bodies import ChatCall, build_body
from svc.providers.catalog import Provider
from svc.providers.protocol import Protocol
from svc.providers.replies import CHAT_COUNTS, Completion, read_chat
from svc.providers.traits import Traits


class Chat(Protocol[ChatCall]):
    """`POST /chat/completions`."""

    path = "/chat/completions"
    counts = CHAT_COUNTS

    def body(self, provider: Provider, name: str, call: ChatCall, traits: Traits) -> JsonObject:
        return build_body(provider, name, call, traits)

    def read(self, payload: Any, call: ChatCall) -> Completion:
        return read_chat(payload, call.logprobs, call.max_tokens)
