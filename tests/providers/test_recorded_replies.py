"""Whatever a provider is known to have sent ends in an answer, or in one clear error."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from svc.deadline import Deadline
from svc.engine.ask import Asker
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool
from svc.engine.debias import DebiasMemory
from svc.engine.decide import Engine
from svc.errors import ApiError
from svc.flows import FlowPool
from svc.pins import NEWEST
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.routing import Router
from svc.schemas import load_decision
from tests.engine.fakes import MemoryJournal, OpenGate
from tests.providers.recorded import MODES, STATE, Recorded, recorded
from tests.scripted import ScriptedProvider

RECORDED = recorded()
SECONDS = 30.0


def provider_of(facts: dict[str, Any], url: str) -> Provider:
    kind = facts.get("kind", "hosted")
    return Provider(
        "p",
        url,
        key="k-1",
        rpm=None,
        local=kind == "local",
        aggregator=kind == "aggregator",
        tokens_field="max_completion_tokens" if kind == "aggregator" else "max_tokens",
    )


class Service:
    """The engine over a real client, in front of a provider that plays a recording back."""

    def __init__(self, played: Recorded, url: str) -> None:
        provider = provider_of(dict(played.facts), url)
        self.played = played
        self.client = Client({"p": provider}, pool_size=8)
        self.calls = CallPool(self.client, OpenGate(), threads=8, jitter=lambda: -0.9)
        self.flows = FlowPool(2)
        asker = Asker(self.client, self.calls, DecisionCache(0), DebiasMemory())
        router = Router({"p": provider}, "@p/m", self.client.list_models)
        self.engine = Engine(router, asker, self.flows, MemoryJournal(), b"salt", NEWEST)

    def end(self, mode: str) -> tuple[str, Any]:
        """What a request ends in: the mode that answered or the error, and the top answer."""
        body = {"state": STATE, "questions": self.played.questions, "mode": mode, "debias": False}
        try:
            response = self.engine.decide(load_decision(body), Deadline(SECONDS)).response()
        except ApiError as error:
            assert "@p/m" in error.message
            return error.type, None
        (answer, *_) = response["answers"].values()
        return response["mode"], top(answer)

    def close(self) -> None:
        self.client.close()
        self.calls.close()
        self.flows.close()


def top(answer: dict[str, Any]) -> Any:
    if "noul" in answer:
        return answer["noul"] >= 0.5
    return answer.get("choice", answer.get("value"))


CASES = [
    pytest.param(one, mode, id=f"{one.name}-{mode}")
    for one in RECORDED
    for mode in MODES
    if mode in one.ends
]


@pytest.mark.parametrize(("played", "mode"), CASES)
def test_a_recorded_reply_ends_as_it_must(played: Recorded, mode: str) -> None:
    with (
        ScriptedProvider(played.behave) as provider,
        closing(Service(played, provider.url)) as service,
    ):
        ended, answer = service.end(mode)
        asked = len(provider.bodies)
        again = service.end(mode)
        again_asked = len(provider.bodies) - asked
    assert ended == played.ends[mode]
    if played.answer(mode) is not None:
        assert answer == played.answer(mode)
    assert again == (ended, answer)
    if ended in ("logprobs", "verbal"):
        labels = 2 if played.facts.get("questions") == "pair" and ended == "logprobs" else 1
        assert again_asked <= labels, "what was learnt of the model is used from the second ask on"


def test_there_are_enough_recordings_of_enough_providers() -> None:
    assert len(RECORDED) >= 80
    assert len({one.facts["provider"] for one in RECORDED}) >= 16


@pytest.mark.parametrize("played", [pytest.param(one, id=one.name) for one in RECORDED])
def test_a_recording_says_what_was_seen_and_where(played: Recorded) -> None:
    facts = played.facts
    assert facts["fact"].endswith(".")
    assert facts["source"].startswith("https://") or facts.get("note")
    assert set(facts["ends"]) <= set(MODES)
