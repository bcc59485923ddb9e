"""What traces are told of decisions, and when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from svc.deadline import Deadline
from svc.engine.traced import TracedClient, TracedEngine, challenge
from svc.errors import ModelError
from svc.providers import ChatCall, Client, Provider, ServerTrouble
from svc.providers.failures import Refused
from svc.records import Model
from svc.schemas import load_decision
from svc.store import StorageError
from tests.engine.fakes import failing, world
from tests.engine.models import NOUL, yes
from tests.scripted import Behaviour, Reply, ScriptedProvider, always, completion, error
from tests.telemetry.recorder import Recorder

CALL = ChatCall(({"role": "user", "content": "the secret plan"},), 50)
BODY = {"state": "the secret plan", "questions": {"k": NOUL}, "ref": "secret"}


def test_a_decision_is_a_span_with_its_commit_below() -> None:
    trace = Recorder()
    with world(engine=TracedEngine, m=yes(0.9)) as made:
        deadline = Deadline(30, trace=trace)
        decision = made.engine.decide(load_decision(BODY), deadline)
    (span,) = trace.parts
    assert span.ended
    assert span.facts["svc.decision.id"] == decision.id
    assert "secret" not in str(span.facts)
    assert [(part.name, part.ended) for part in span.parts] == [("commit", True)]
    assert deadline.trace is trace


def test_what_is_asked_later_is_linked_to_the_decision() -> None:
    trace = Recorder()
    with world(engine=TracedEngine, m=yes(0.9)) as made:
        deadline = Deadline(30, trace=trace)
        assert deadline.later is None
        made.engine.decide(load_decision(BODY), deadline)
    assert deadline.later is trace.parts[0].linked[0]


def test_a_challengers_decision_is_a_span_of_another_name_without_a_commit() -> None:
    trace = Recorder()
    with world(m=yes(0.9)) as made:
        deadline = Deadline(30, trace=trace)
        challenge(made.engine.decide, load_decision(BODY), deadline, "3")
        challenge(made.engine.decide, load_decision(BODY), Deadline(30), "3")
    assert deadline.trace is trace
    (span,) = trace.parts
    assert (span.name, span.ended, span.parts) == ("challenge", True, [])
    assert "svc.cost_usd" in span.facts and "svc.decision.id" not in span.facts
    assert "secret" not in str(span.facts)


def test_without_a_trace_a_decision_is_the_same() -> None:
    with world(engine=TracedEngine, m=yes(0.9)) as made:
        assert made.engine.decide(load_decision(BODY), Deadline(30)).id


def test_a_decision_that_fails_ends_its_span() -> None:
    trace = Recorder()
    with world(engine=TracedEngine, m=failing(Refused("no"))) as made:
        deadline = Deadline(30, trace=trace)
        with pytest.raises(ModelError):
            made.engine.decide(load_decision(BODY), deadline)
    (span,) = trace.parts
    assert (span.ended, span.parts) == (True, [])
    assert span.error is not None
    assert issubclass(span.error, ModelError)
    assert deadline.trace is trace


def test_a_commit_that_fails_is_told() -> None:
    def full(decision: object) -> str:
        raise StorageError("the disk is full")

    trace = Recorder()
    with world(engine=TracedEngine, m=yes(0.9)) as made, pytest.raises(StorageError):
        made.engine.decide(load_decision(BODY), Deadline(30, trace=trace), keep=full)
    (span,) = trace.parts
    (commit,) = span.parts
    assert (commit.error, span.error) == (StorageError, StorageError)


def test_a_branch_of_a_deadline_goes_into_the_same_trace() -> None:
    trace = Recorder()
    assert Deadline(1, trace=trace).branch().trace is trace
    assert Deadline(1).branch().trace is None


@contextmanager
def scripted(
    behaviour: Behaviour, name: str = "here"
) -> Iterator[tuple[ScriptedProvider, TracedClient, Model]]:
    with ScriptedProvider(always(behaviour)) as provider:
        catalog = {name: Provider(name, provider.url, key="k-1", local=True)}
        with closing(Client(catalog, pool_size=2)) as client:
            yield provider, TracedClient(client), Model(f"@{name}/m", name, "m")


def test_a_call_has_the_names_of_the_conventions_and_is_told_to_the_provider() -> None:
    trace = Recorder()
    answered = {**completion("A"), "model": "m-2026", "system_fingerprint": "fp"}
    with scripted(Reply(answered), "gemini") as (provider, client, model):
        assert client.call(model, CALL, 30, deadline=Deadline(30, trace=trace)).text == "A"
    (span,) = trace.parts
    assert (span.name, span.ended, span.error) == ("chat m", True, None)
    assert span.facts == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-2026",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    assert provider.requests[0].headers["traceparent"] == "of chat m"
    assert provider.requests[0].headers["authorization"] == "Bearer k-1"


def test_a_call_that_fails_ends_its_span_without_usage() -> None:
    trace = Recorder()
    with scripted(Reply(error("the secret plan"), 500)) as (_, client, model):
        with pytest.raises(ServerTrouble):
            client.call(model, CALL, 30, deadline=Deadline(30, trace=trace))
    (span,) = trace.parts
    assert (span.ended, span.error) == (True, ServerTrouble)
    assert not any(name.startswith("gen_ai.usage") for name in span.facts)


def test_without_a_trace_the_provider_is_told_nothing() -> None:
    with scripted(Reply(completion("A"))) as (provider, client, model):
        client.call(model, CALL, 30, deadline=Deadline(30))
        client.call(model, CALL, 30)
    assert all("traceparent" not in request.headers for request in provider.requests)
