"""Challengers as live decisions meet them."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from flask import Flask

from svc.bootstrap import Services
from svc.engine.challenges import THREADS, WAITING
from svc.records import Challenger
from svc.store import AskedPair, Challengers, Per, QuestionVersions
from tests.preferring import PreferringModel
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, error
from tests.web.conftest import Start
from tests.web.models import PREFERS_CATS, decision, reply_to

RIVAL = "@scripted/rival"
PREFERS_DOGS = PreferringModel({"dog": 9.0})
PATIENCE_S = 20.0
SHORT = {
    "type": "choice",
    "instructions": "Cat or dog?",
    "options": {"cat": "", "dog": ""},
    "escape": False,
}


class Provider:
    """Two models: the usual one prefers cats, its rival dogs."""

    def __init__(self, rival: Callable[[Json], Behaviour] | None = None) -> None:
        self.rival = rival or (lambda body: Reply(reply_to(PREFERS_DOGS, body)))
        self.asked: list[Json] = []

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.asked.append(body)
        if body["model"] == "rival":
            return self.rival(body)
        return Reply(reply_to(PREFERS_CATS, body))

    def asked_of(self, model: str) -> list[Json]:
        return [body for body in self.asked if body["model"] == model]


def services_of(app: Flask) -> Services:
    found = app.extensions["svc"]
    assert isinstance(found, Services)
    return found


def decide(app: Flask, **fields: Any) -> Any:
    """The answer, which has left once this returns."""
    response = app.test_client().post("/v1/decide", json=decision(**fields))
    assert response.status_code == 200, response.text
    body = response.get_json()
    response.close()
    return body


def challenge(
    app: Flask,
    model: str | None = RIVAL,
    wording: str | None = None,
    cap: tuple[int, Per] | None = None,
) -> Challenger:
    """Have every decision on the animal asked of a challenger too."""
    decide(app, state="the first one")
    database = services_of(app).database
    version = QuestionVersions(database).latest("default", "animal")
    assert version is not None
    new = Challenger(0, "default", "animal", version.digest, model, wording, 1.0)
    Challengers(database).add(new, version.question_id, 0, cap)
    (found,) = Challengers(database).running("default")
    return found


def until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def pairs_of(app: Flask, challenger: Challenger, count: int = 1) -> list[AskedPair]:
    stored = Challengers(services_of(app).database)
    until(lambda: len(stored.pairs(challenger.id, 100)) >= count)
    return stored.pairs(challenger.id, 100)


@pytest.mark.parametrize("wanted", [RIVAL, None])
def test_a_decision_is_asked_of_the_challenger_too(start: Start, wanted: str | None) -> None:
    provider = Provider()
    app = start(provider)
    challenger = challenge(app)
    before = len(provider.asked_of("rival"))
    fields = {} if wanted is None else {"model": wanted}
    answered = decide(app, **fields)
    (pair,) = pairs_of(app, challenger)
    assert answered["answers"]["animal"]["choice"] == ("dog" if wanted else "cat")
    assert pair.error is None and pair.answer is not None and '"choice":"dog"' in pair.answer
    assert pair.latency_ms > 0 and pair.own_latency_ms > 0
    assert len(provider.asked_of("rival")) > before


@pytest.mark.parametrize(
    ("path", "questions"),
    [
        ("/v1/systemone", {"k": {"type": "choice", "criteria": {"cat": "", "dog": ""}}}),
        ("/v1/decisions", [{"type": "predicate", "instructions": "Is it about a cat?"}]),
    ],
)
def test_decisions_of_other_routes_are_asked_too(start: Start, path: str, questions: Any) -> None:
    app = start(Provider())
    client = app.test_client()

    def send(text: str) -> None:
        given = {"state": text} if path == "/v1/systemone" else {"input": text}
        response = client.post(path, json={**given, "questions": questions})
        assert response.status_code == 200, response.text
        response.close()

    send("A cat.")
    database = services_of(app).database
    ((key, row, digest),) = database.rows(
        "SELECT key, question_id, digest FROM asked JOIN questions ON questions.id = question_id"
    )
    Challengers(database).add(Challenger(0, "default", key, digest, RIVAL, None, 1.0), row, 0)
    send("Another cat.")
    (challenger,) = Challengers(database).running("default")
    assert len(pairs_of(app, challenger)) == 1


def test_another_wording_is_asked_of_the_same_model(start: Start) -> None:
    provider = Provider()
    app = start(provider)
    wording = (
        '{"type":"choice","instructions":"Cat or dog?","options":{"cat":"","dog":""},'
        '"escape":false}'
    )
    challenger = challenge(app, None, wording)
    decide(app)
    (pair,) = pairs_of(app, challenger)
    assert pair.answer is not None and '"choice":"cat"' in pair.answer
    assert any(SHORT["instructions"] in str(body) for body in provider.asked_of("m"))


def test_a_question_in_another_wording_or_project_or_from_the_cache_is_not_asked(
    start: Start,
) -> None:
    provider = Provider()
    app = start(provider)
    challenger = challenge(app)
    client = app.test_client()
    others = (
        {"state": "x", "questions": {"animal": SHORT}},
        decision(project="other"),
        decision(state="the first one"),
    )
    for body in others:
        response = client.post("/v1/decide", json=body)
        assert response.status_code == 200
        response.close()
    decide(app)
    assert len(pairs_of(app, challenger)) == 1


def test_a_label_given_once_counts_for_both(start: Start) -> None:
    app = start(Provider())
    challenger = challenge(app)
    answered = decide(app)
    pairs_of(app, challenger)
    given = {"decision_id": answered["id"], "question": "animal", "label": "dog"}
    assert app.test_client().post("/v1/feedback", json=given).status_code == 200
    (pair,) = pairs_of(app, challenger)
    assert (pair.label, pair.truth) == ('"dog"', 1)
    assert pair.p is not None and pair.own_p is not None and pair.p != pair.own_p


def test_a_label_of_the_review_queue_has_its_chance(start: Start) -> None:
    app = start(Provider())
    challenger = challenge(app)
    answered = [decide(app, state=f"animal {number}")["id"] for number in range(4)]
    pairs_of(app, challenger, 4)
    client = app.test_client()
    wanted = {"question": "animal", "reviewer": "ann", "limit": "2"}
    items = client.get("/v1/review", query_string=wanted).get_json()["items"]
    handed_out = [item["id"] for item in items]
    # One of them may be the decision that is older than the challenger.
    seen = next(one for one in answered if one in handed_out)
    unseen = next(one for one in answered if one not in handed_out)
    for decision_id in (seen, unseen):
        given = {
            "decision_id": decision_id,
            "question": "animal",
            "label": "dog",
            "reviewer": "ann",
        }
        assert client.post("/v1/feedback", json=given).status_code == 200
    labelled = [pair for pair in pairs_of(app, challenger, 4) if pair.label is not None]
    assert sorted(pair.relative is None for pair in labelled) == [False, True]


def test_a_failing_challenger_is_counted_and_changes_no_answer(start: Start) -> None:
    app = start(Provider(lambda _body: Reply(error("no"), 400)))
    challenger = challenge(app)
    decide(app)
    (pair,) = pairs_of(app, challenger)
    assert pair.error == "model_error" and pair.p is None


class Stuck:
    """A model that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = self.answered = 0

    def __call__(self, body: Json) -> Behaviour:
        self.asked += 1
        self.let_go.wait()
        self.answered += 1
        return Reply(reply_to(PREFERS_DOGS, body))


def test_decisions_are_answered_and_the_server_ends_before_a_challenger_that_hangs(
    start: Start,
) -> None:
    stuck = Stuck()
    app = start(Provider(stuck))
    challenge(app)
    services = services_of(app)
    stored = Challengers(services.database)
    try:
        for number in range(THREADS + WAITING + 10):
            decide(app, state=f"the cat {number}", debias=False)
        until(lambda: stuck.asked == THREADS // 2)
        until(lambda: stored.all()[0].dropped >= 10)
        services.challenges.close()
        # All of this came before its first answer, and nothing that waited for it was asked.
        assert (stuck.asked, stuck.answered) == (THREADS // 2, 0)
    finally:
        stuck.let_go.set()


def test_decisions_are_answered_beside_a_challenger_that_is_dead(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    app = start(Provider(), SVC_PROVIDER_DEAD_URL=f"http://127.0.0.1:{port}/v1")
    challenger = challenge(app, "@dead/rival")
    stored = Challengers(services_of(app).database)
    for number in range(THREADS + WAITING + 10):
        decide(app, state=f"the cat {number}", debias=False)
    until(lambda: stored.all()[0].dropped > 0 or bool(stored.pairs(challenger.id, 1)))
    assert all(pair.error for pair in stored.pairs(challenger.id, 100))


def test_its_own_budget_pays_and_what_that_does_not_pay_is_counted(start: Start) -> None:
    with ScriptedProvider(Provider()) as aggregator:
        app = start(
            Provider(),
            SVC_PROVIDER_URL=aggregator.url,
            SVC_PROVIDER_OPENROUTER_PRICE="1,1",
            OPENROUTER_API_KEY="k",
        )
        challenger = challenge(app, "vendor/rival", cap=(1_000, Per.DAY))
        services = services_of(app)
        decide(app)
        stored = Challengers(services.database)
        until(lambda: stored.all()[0].refused == 1)
        assert (stored.pairs(challenger.id, 9), aggregator.requests) == ([], [])
        # It is no budget of a project or key, which callers see.
        assert services.budgets.states() == []
        assert len(services.budgets.of_challengers()) == 1


def test_a_strict_decision_is_not_given_to_a_provider_elsewhere(start: Start) -> None:
    app = start(
        Provider(),
        SVC_PROVIDER_ELSEWHERE_URL="https://elsewhere.invalid/v1",
        SVC_PROVIDER_ELSEWHERE_KEY="k",
    )
    challenger = challenge(app, "@elsewhere/m")
    decide(app, privacy="strict")
    stored = Challengers(services_of(app).database)
    until(lambda: stored.all()[0].refused == 1)
    assert stored.pairs(challenger.id, 9) == []


def test_no_state_is_kept_of_what_a_challenger_is_asked(start: Start) -> None:
    app = start(Provider())
    challenger = challenge(app)
    decide(app, state="an unmistakable marmoset")
    pairs_of(app, challenger)
    database = services_of(app).settings.db
    with sqlite3.connect(database) as connection:
        assert "marmoset" not in "".join(connection.iterdump())


def test_the_promoted_model_answers_requests_that_name_none(start: Start) -> None:
    provider = Provider()
    app = start(provider)
    challenger = challenge(app)
    stored = Challengers(services_of(app).database)
    stored.promote(challenger, 0)
    assert decide(app, state="a cat")["model"] == RIVAL
    assert decide(app, state="a cat", model="@scripted/m")["model"] == "@scripted/m"
    assert decide(app, state="a cat", config="svc-1.3.0")["model"] == "@scripted/m"
    assert decide(app, state="a cat", project="other")["model"] == "@scripted/m"
    stored.remove(challenger)
    assert decide(app, state="a dog")["model"] == "@scripted/m"


def test_a_forecast_is_of_the_project_of_the_key(start: Start) -> None:
    app = start(Provider())
    stored = Challengers(services_of(app).database)
    stored.promote(challenge(app), 0)
    body = {"questions": decision()["questions"], "sample": [], "rows": 1}
    keys = services_of(app).keys
    said = {}
    for project in (None, "other"):
        headers = {"Authorization": f"Bearer {keys.create(str(project), 600, project).text}"}
        response = app.test_client().post("/v1/forecast", json=body, headers=headers)
        said[project] = [one["model"] for one in response.get_json()["models"]]
    assert said == {None: [RIVAL], "other": ["@scripted/m"]}


def test_labels_have_taught_the_model_that_is_promoted(start: Start) -> None:
    app = start(Provider())
    challenger = challenge(app)
    # The rival always says dog, and is too sure of it.
    for number in range(40):
        answered = decide(app, state=f"animal {number}")
        pairs_of(app, challenger, number + 1)
        label = "dog" if number % 10 < 6 else "cat"
        given = {"decision_id": answered["id"], "question": "animal", "label": label}
        assert app.test_client().post("/v1/feedback", json=given).status_code == 200
    by_name = decide(app, state="named", model=RIVAL)["answers"]["animal"]
    Challengers(services_of(app).database).promote(challenger, 0)
    promoted = decide(app, state="unnamed")
    assert promoted["model"] == RIVAL
    # The raw answer is surer than 0.99.
    found = promoted["answers"]["animal"]["probabilities"]["dog"]
    assert found == by_name["probabilities"]["dog"] == pytest.approx(0.6, abs=0.1)


def test_a_promoted_model_that_may_not_see_strict_requests_gets_none(start: Start) -> None:
    app = start(
        Provider(),
        SVC_PROVIDER_ELSEWHERE_URL="https://elsewhere.invalid/v1",
        SVC_PROVIDER_ELSEWHERE_KEY="k",
    )
    challenger = challenge(app, "@elsewhere/m")
    Challengers(services_of(app).database).promote(challenger, 0)
    assert decide(app, privacy="strict")["model"] == "@scripted/m"
