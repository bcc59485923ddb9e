"""A client that asks no provider: replies come from whoever has collected them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from svc.deadline import Deadline
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.encoded import Body
from svc.providers.long_replies import ComingReply
from svc.providers.replies import Reply
from svc.providers.traits import UNKNOWN, TraitMemory, Traits, model_of
from svc.records import Model


class Replies(Protocol):
    """Knows replies to bodies."""

    def reply(self, model: Model, body: bytes) -> Reply:
        """The model's reply to a body. Raises `Pending` where it is not there yet."""


class KnownTraits(TraitMemory):
    """What was known of models when a run began; nothing is learned.

    What is sent depends on it, so that a decision that is made again asks for the same replies.
    """

    def __init__(self, known: Mapping[str, Traits]) -> None:
        self._known = known

    def of(self, model_id: str) -> Traits:
        return self._known.get(model_of(model_id), UNKNOWN)

    def change(self, model_id: str, change: Callable[[Traits], Traits]) -> None:
        """Nothing is learned."""

    def close(self) -> None:
        """Nothing is shared."""


class ReplayClient(Client):
    """Reads replies as a client does that asks; calls cost what they cost in batches."""

    def __init__(
        self, catalog: Mapping[str, Provider], replies: Replies, known: Mapping[str, Traits]
    ) -> None:
        """`known` are the traits of models by their ids."""
        prices = {name: provider.batched() for name, provider in catalog.items()}
        super().__init__(MappingProxyType(prices), 1, traits=KnownTraits(known))
        # Without any, nothing that is done here can reach a provider.
        self._transports = {}
        self._replies = replies

    def _asked(
        self,
        model: Model,
        path: str,
        key: str | None,
        data: Body,
        timeout_s: float,
        deadline: Deadline,
        coming: ComingReply,
        headers: Mapping[str, str],
    ) -> Reply:
        reply = self._replies.reply(model, data if isinstance(data, bytes) else b"".join(data))
        coming.take_whole(len(reply.body))
        return reply
