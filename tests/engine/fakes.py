"""Hand-written stand-ins for what the engine is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from svc.deadline import Deadline
from svc.engine.ask import Asker
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool
from svc.engine.debias import DebiasMemory
from svc.engine.decide import Engine
from svc.flows import FlowPool
from svc.pins import NEWEST
from svc.providers.bodies import ChatCall, build_body
from svc.providers.catalog import Provider
from svc.providers.prices import TokenUsage
from svc.providers.replies import Completion, Token
from svc.providers.routing import Router
from svc.providers.traits import NO_CORRECTIONS, Corrections, TraitMemory
from svc.records import Decision, Model
from svc.schemas import load_decision
from tests.preferring import PreferringModel

LOCAL = Provider("here", "http://127.0.0.1:1/v1", local=True, rpm=None)
HOSTED = Provider("there", "https://there.example/v1", key="k", rpm=None)

NO_KINDS: Mapping[str, str] = {}  # every model completes chats

Answerer = Callable[[str, ChatCall], Completion]


class FakeClient:
    """Answers by model name with a function, and keeps what it was asked."""

    def __init__(self, answerers: dict[str, Answerer], kinds: Mapping[str, str]) -> None:
        """`kinds` says which models are decision servers, and of which kind."""
        self.answerers, self.kinds = answerers, kinds
        self.calls: list[tuple[str, ChatCall]] = []
        self.told: list[str] = []
        self.traits = TraitMemory(slots=64)

    def call(
        self,
        model: Model,
        call: ChatCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> Completion:
        self.calls.append((model.name, call))
        return self.answerers[model.name](model.name, call)

    def provider(self, model: Model) -> Provider:
        return replace(LOCAL, kind=self.kinds.get(model.name, LOCAL.kind))

    def cost_usd(self, model: Model, usage: TokenUsage) -> float:
        return 0.001

    def tell(self, line: str, *parts: object) -> None:
        self.told.append(line % parts)

    def list_models(self, provider: Provider) -> list[str]:
        return []

    def calls_to(self, name: str) -> list[ChatCall]:
        """The calls to one model."""
        return [call for model, call in self.calls if model == name]


class OpenGate:
    """Lets every call through at once."""

    def line(self, provider: str, caller: str | None, max_wait: float, joined: bool) -> float:
        return 0.0

    def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float:
        return 0.0


class MemoryJournal:
    """Keeps records in a list; ids count up. So does what failed."""

    def __init__(self) -> None:
        self.records: list[Decision] = []
        self.failures: list[tuple[str, str]] = []

    def add(self, decision: Decision) -> str:
        self.records.append(decision)
        return f"dec_{len(self.records)}"

    def add_failure(self, project: str, model: str) -> None:
        self.failures.append((project, model))


def answering(model: PreferringModel) -> Answerer:
    """A model that answers with logprobs where they are asked for, else with JSON."""

    def answer(name: str, call: ChatCall) -> Completion:
        body = body_of(call)
        if not call.logprobs:
            return Completion(model.verbal_reply(body), input_tokens=10)
        text, content = model.logprobs_reply(body)
        return Completion(text, tuple(map(_token, content)), input_tokens=10)

    return answer


def failing(error: Exception) -> Answerer:
    """A model whose every call fails with `error`."""

    def answer(name: str, call: ChatCall) -> Completion:
        raise error

    return answer


def body_of(call: ChatCall) -> dict[str, Any]:
    """The HTTP body that the call would be sent as."""
    return build_body(LOCAL, "m", call)


def _token(entry: dict[str, Any]) -> Token:
    listed = tuple((one["token"], one["logprob"]) for one in entry["top_logprobs"])
    return Token(entry["token"], entry["logprob"], listed)


class World:
    """An engine among fakes."""

    def __init__(
        self,
        answerers: dict[str, Answerer],
        cache_size: int = 0,
        kinds: Mapping[str, str] = NO_KINDS,
        engine: type[Engine] = Engine,
    ) -> None:
        self.client = FakeClient(answerers, kinds)
        self.journal = MemoryJournal()
        self.calls = CallPool(self.client, OpenGate(), threads=16, jitter=lambda: 0.0)
        self.flows = FlowPool(threads=16)
        self.memory = DebiasMemory()
        asker = Asker(self.client, self.calls, DecisionCache(cache_size), self.memory)
        catalog = {LOCAL.name: LOCAL, HOSTED.name: HOSTED}
        router = Router(catalog, "@here/m", self.client.list_models)
        self.engine = engine(router, asker, self.flows, self.journal, b"salt", NEWEST)

    def decide(self, body: dict[str, Any], seconds: float = 30.0) -> dict[str, Any]:
        return self.decision(body, seconds).response()

    def decision(self, body: dict[str, Any], seconds: float = 30.0) -> Decision:
        return self.engine.decide(load_decision(body), Deadline(seconds))

    def close(self) -> None:
        self.calls.close()
        self.flows.close()


@contextmanager
def world(
    cache_size: int = 0,
    kinds: Mapping[str, str] = NO_KINDS,
    engine: type[Engine] = Engine,
    **answerers: Answerer,
) -> Iterator[World]:
    """A world with these models on `@here`; without any, `m` prefers nothing."""
    made = World(answerers or {"m": answering(PreferringModel())}, cache_size, kinds, engine)
    try:
        yield made
    finally:
        made.close()


def users(calls: Sequence[ChatCall]) -> list[str]:
    """The user message of each call."""
    return [str(call.messages[-1]["content"]) for call in calls]
