"""Decisions over providers that answer, and over those that do anything else."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.serving import Server, stored
from tests.scripted import (
    Behaviour,
    Drip,
    Endless,
    Handler,
    Json,
    Raw,
    Reply,
    Reset,
    ScriptedProvider,
    Silent,
    always,
    completion,
    error,
    redirect,
)
from tests.web.models import PREFERS_CATS, decision, reply_to, replying, verbal_only

CALL_LIMIT_S = 1  # seconds, of the provider whose behaviour a test chooses
WAITING = 220  # decisions that wait on a provider at once
BARRIER_S = 30  # seconds until all of them must have asked


class Chosen:
    """A handler that is exchanged while the server runs."""

    handler: Handler = staticmethod(replying())

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        return self.handler(body, n, headers)


@pytest.fixture(scope="module")
def chosen() -> Chosen:
    return Chosen()


@pytest.fixture(scope="module")
def server(chosen: Chosen, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for every test here: whatever a provider did, it has to go on."""
    db = tmp_path_factory.mktemp("e2e") / "svc.db"
    with ScriptedProvider(chosen) as first, ScriptedProvider(replying()) as second:
        with Server(
            db,
            "--model",
            "@first/m",
            SVC_PROVIDER_FIRST_URL=first.url,
            SVC_PROVIDER_FIRST_TIMEOUT=str(CALL_LIMIT_S),
            SVC_PROVIDER_SECOND_URL=second.url,
        ) as server:
            yield server
            assert server.stop() == 0
            assert "Traceback" not in server.log and "unforeseen" not in server.log


@pytest.fixture(autouse=True)
def _answering_again_afterwards(
    server: Server, chosen: Chosen, request: pytest.FixtureRequest
) -> Iterator[None]:
    yield
    chosen.handler = replying()
    assert not answered(server, f"after {request.node.name}", mode="verbal")["cached"]


def answered(server: Server, state: str, **fields: Any) -> dict[str, Any]:
    response = server.post(decision(state, **fields))
    assert response.status_code == 200, response.text
    assert response.headers["x-request-id"]
    return dict(response.json())


def one_order_fails(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """Refuses the call whose options are reversed."""
    text = body["messages"][-1]["content"]
    if text.index(". dog") < text.index(". cat"):
        return Reply(error("no"), 400)
    return Reply(reply_to(PREFERS_CATS, body))


def test_a_decision_in_logprobs_mode(server: Server) -> None:
    body = answered(server, "logprobs")
    assert (body["mode"], body["debiased"]) == ("logprobs", True)
    assert body["answers"]["animal"]["probabilities"] == {"cat": 0.75, "dog": 0.25}


def test_the_same_decision_in_verbal_mode(server: Server, chosen: Chosen) -> None:
    chosen.handler = verbal_only()
    body = answered(server, "verbal", model="@first/without-logprobs")
    assert (body["mode"], body["debiased"]) == ("verbal", True)
    assert body["answers"]["animal"]["probabilities"] == {"cat": 0.75, "dog": 0.25}


@pytest.mark.parametrize("mode", ["logprobs", "verbal"])
def test_one_of_the_two_orders_fails_and_the_other_counts(
    server: Server, chosen: Chosen, mode: str
) -> None:
    chosen.handler = one_order_fails
    body = answered(server, "one order", mode=mode)
    assert (body["mode"], body["debiased"]) == (mode, False)
    assert body["answers"]["animal"]["probabilities"] == {"cat": 0.75, "dog": 0.25}


@pytest.mark.parametrize(
    "behaviour",
    [Reply(error("no"), 500), Silent(), Reset(), Reply("garbage")],
    ids=["fails", "stalls", "resets", "garbage"],
)
def test_a_chain_goes_on_to_the_second_provider(
    server: Server, chosen: Chosen, behaviour: Behaviour
) -> None:
    chosen.handler = always(behaviour)
    body = answered(server, f"chain {behaviour}", model=["@first/m", "@second/m"])
    assert body["model"] == "@second/m"


BIG = completion("A" * 10_000_000)
MISBEHAVIOURS: dict[str, Behaviour] = {
    "silent": Silent(),
    "drips its header": Drip(Reply(completion("A")), every=0.05, from_header=True),
    "drips its body": Drip(Reply(completion("A")), every=0.05),
    "drips without end": Endless(every=0.05),
    "floods without end": Endless(),
    "floods in chunks": Endless(chunked=True),
    "resets": Reset(),
    "resets at once": Reset(after=0),
    "closes at once": Raw(),
    "stops half-way": Raw(Reply(completion("A")).wire()[:120], half=True),
    "no http": Raw(b"\x00\x01\xff wombat\r\n\r\n"),
    "garbage": Reply("wombat"),
    "no utf-8": Reply(b"\xff\xfe wombat"),
    "ten megabytes": Reply(BIG),
    "redirects": redirect("http://127.0.0.1:1/wombat"),
    "redirects for good": redirect("http://127.0.0.1:1/wombat", 308),
    "no content": Reply(status=204),
    "wrong shapes": Reply({"choices": [{"message": []}], "usage": "wombat"}),
    "deep nesting": Reply("[" * 200_000),
}


@pytest.mark.parametrize("behaviour", MISBEHAVIOURS.values(), ids=MISBEHAVIOURS)
def test_a_misbehaving_provider_is_a_model_error_within_its_limit(
    server: Server, chosen: Chosen, behaviour: Behaviour
) -> None:
    chosen.handler = always(behaviour)
    response = server.post(decision(repr(behaviour)[:1_000]), timeout=20)
    assert response.status_code == 502, response.text
    assert response.json()["error"]["type"] == "model_error"
    assert "wombat" not in response.text and response.headers["x-request-id"]


def test_a_provider_that_sends_elsewhere_is_not_followed(server: Server, chosen: Chosen) -> None:
    with ScriptedProvider(replying()) as elsewhere:
        chosen.handler = always(redirect(elsewhere.url + "/chat/completions", 307))
        assert server.post(decision("elsewhere")).status_code == 502
        assert elsewhere.connections == 0


def test_as_many_decisions_as_promised_wait_on_a_slow_provider_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    everyone = threading.Barrier(WAITING)

    def handle(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        everyone.wait(BARRIER_S)  # nobody is answered before all have asked
        return Reply(reply_to(PREFERS_CATS, body))

    db = tmp_path_factory.mktemp("slow") / "svc.db"
    with ScriptedProvider(handle) as provider, ThreadPoolExecutor(WAITING) as threads:
        with Server(db, "--model", "@slow/m", SVC_PROVIDER_SLOW_URL=provider.url) as server:
            bodies = [decision(f"state {n}", debias=False) for n in range(WAITING)]
            responses = list(threads.map(server.post, bodies))
            assert [r.status_code for r in responses] == [200] * WAITING
            assert server.get("/health").status_code == 200
            assert server.stop() == 0
    assert sorted(r.json()["id"] for r in responses) == list(stored(db))
