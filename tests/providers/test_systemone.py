"""Servers of the criteria shape: what they are asked, and how they answer."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from svc.providers.failures import (
    BadReply,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
    Unanswerable,
)
from svc.questions.kit.base import SCORE, PlainQuestion
from tests.providers.deciding import ALL, BAD, MODEL, TEAM, TURNED, URGENT, asking, decide, serving
from tests.scripted import error

KIND = "systemone"
TEAM_SHARES = {"billing": 0.7, "access": 0.2, "other": 0.1}
ANSWERS: dict[str, Any] = {
    "answers": {
        "q1": {"type": "choice", "choice": "billing", "probabilities": TEAM_SHARES},
        "q2": {"type": "choice", "choice": "billing", "probabilities": TEAM_SHARES},
        "q3": {"type": "score", "probabilities": {"0": 0.1, "1": 0.3, "2": 0.6}},
        "q4": {"type": "noul", "noul": 0.8},
    },
    "usage": {"input_tokens": 70, "output_tokens": 3},
}


def with_answer(name: str, answer: Any) -> dict[str, Any]:
    """The answers with another one in place of one of them; None leaves it out."""
    reply = copy.deepcopy(ANSWERS)
    reply["answers"].pop(name)
    return {**reply, "answers": {**reply["answers"], **({} if answer is None else {name: answer})}}


def test_every_question_is_asked_with_its_criteria_under_a_neutral_name() -> None:
    with serving(KIND, ANSWERS) as (server, client):
        client.call(MODEL, asking(), 30.0)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/systemone")
    assert request.headers["authorization"] == "Bearer k-1"
    criteria = {"billing": "Invoices", "access": "", "other": " "}
    assert request.body == {
        "model": "decider/1",
        "state": "charged twice",
        "questions": {
            "q1": {"type": "choice", "instructions": "Which team?", "criteria": criteria},
            "q2": {"type": "choice", "instructions": "Which team?", "criteria": criteria},
            "q3": {
                "type": "score",
                "instructions": "How bad?",
                "criteria": ["low", "mid", "high"],
            },
            "q4": {"type": "noul", "instructions": "Is it urgent?"},
        },
    }
    assert list(request.body["questions"]["q1"]["criteria"]) == ["billing", "access", "other"]
    assert list(request.body["questions"]["q2"]["criteria"]) == ["other", "access", "billing"]


def test_answers_are_read_by_the_positions_of_the_question_whatever_the_order() -> None:
    found = decide(KIND, ANSWERS, asking())
    assert found.decided == (
        {0: 0.7, 1: 0.2, 2: 0.1},
        {0: 0.7, 1: 0.2, 2: 0.1},
        {0: 0.1, 1: 0.3, 2: 0.6},
        {0: 0.8, 1: pytest.approx(0.2)},
    )
    assert (found.text, found.tokens, found.cut) == ("", None, False)
    assert (found.input_tokens, found.output_tokens) == (70, 3)


def test_probabilities_of_levels_may_come_as_a_list() -> None:
    reply = {"answers": {"q1": {"probabilities": [0.1, 0.3, 0.6]}}}
    assert decide(KIND, reply, asking(BAD)).decided == ({0: 0.1, 1: 0.3, 2: 0.6},)


@pytest.mark.parametrize(
    "shares",
    [
        {"access": 0.6, "stranger": 0.4},
        {"billing": 0.7, "access": 0.3},
        {**TEAM_SHARES, "stranger": 0.0},
        {},
        [0.7, 0.2, 0.1],
    ],
    ids=str,
)
@pytest.mark.parametrize("question", [TEAM, TURNED], ids=["team", "turned"])
def test_options_that_are_missing_or_too_many_are_a_bad_reply(
    question: PlainQuestion, shares: Any
) -> None:
    with pytest.raises(BadReply):
        decide(KIND, {"answers": {"q1": {"probabilities": shares}}}, asking(question))


@pytest.mark.parametrize(
    "shares",
    [
        {"0": 0.4, "1": 0.6},
        {"0": 0.1, "1": 0.3, "2": 0.6, "3": 0.0},
        {"1": 0.1, "2": 0.3, "3": 0.6},
        {"low": 0.1, "mid": 0.3, "high": 0.6},
        {"0": 0.1, "true": 0.3, "2": 0.6},
        [0.4, 0.6],
        [0.1, 0.3, 0.6, 0.0],
        [],
        [True, 0, 0],
    ],
    ids=str,
)
def test_levels_that_are_not_exactly_those_asked_for_are_a_bad_reply(shares: Any) -> None:
    with pytest.raises(BadReply):
        decide(KIND, {"answers": {"q1": {"probabilities": shares}}}, asking(BAD))


@pytest.mark.parametrize("total", [0.981, 1.0, 1.019])
def test_probabilities_may_sum_to_one_but_for_rounding(total: float) -> None:
    reply = {"answers": {"q1": {"probabilities": {**TEAM_SHARES, "billing": total - 0.3}}}}
    found = decide(KIND, reply, asking(TEAM))
    assert found.decided == ({0: pytest.approx(total - 0.3), 1: 0.2, 2: 0.1},)


@pytest.mark.parametrize("total", [0.3, 0.979, 1.021, 1.3])
def test_probabilities_that_sum_to_another_number_are_a_bad_reply(total: float) -> None:
    team = {**TEAM_SHARES, "billing": total - 0.3}
    for question, shares in ((TEAM, team), (BAD, [total / 3] * 3)):
        with pytest.raises(BadReply):
            decide(KIND, {"answers": {"q1": {"probabilities": shares}}}, asking(question))


def test_answers_in_another_order_or_beside_others_are_read_by_name() -> None:
    listed = dict(reversed([*ANSWERS["answers"].items(), ("q9", {"noul": 5})]))
    assert decide(KIND, {"answers": listed}, asking()).decided == (
        decide(KIND, ANSWERS, asking()).decided
    )


def test_a_reply_without_usage_counts_nothing() -> None:
    found = decide(KIND, {"answers": {"q1": {"noul": 1}}}, asking(URGENT))
    assert found.decided == ({0: 1.0, 1: 0.0},)
    assert (found.input_tokens, found.output_tokens, found.reported_cost) == (0, 0, None)


def test_images_are_refused_without_a_call() -> None:
    with serving(KIND, ANSWERS) as (server, client):
        with pytest.raises(Unanswerable, match="takes no images"):
            client.call(MODEL, asking(images=("https://a.example/1.png",)), 30.0)
        assert server.requests == []


def test_more_levels_than_others_take_are_asked_for() -> None:
    many = tuple((f"level {n}", "") for n in range(20))
    question = PlainQuestion(SCORE, "How bad?", many, tuple(range(20)))
    reply = {"answers": {"q1": {"probabilities": {str(n): 0.05 for n in range(20)}}}}
    assert decide(KIND, reply, asking(question)).decided == (dict.fromkeys(range(20), 0.05),)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        {},
        [],
        "text",
        {"answers": None},
        {"answers": []},
        {"answers": {}},
        with_answer("q1", None),
        with_answer("q4", None),
        with_answer("q1", 5),
        with_answer("q1", []),
        with_answer("q1", {}),
        with_answer("q1", {"probabilities": None}),
        with_answer("q1", {"probabilities": 0.7}),
        with_answer("q1", {"probabilities": {**TEAM_SHARES, "billing": "0.7"}}),
        with_answer("q1", {"probabilities": {**TEAM_SHARES, "billing": 70}}),
        with_answer("q1", {"probabilities": {"billing": -0.1, "access": 0.5, "other": 0.6}}),
        with_answer("q1", {"probabilities": {"billing": True, "access": 0, "other": 0}}),
        with_answer("q1", {"probabilities": {**TEAM_SHARES, "billing": None}}),
        with_answer("q3", {"probabilities": [0.1, "x", 0.6]}),
        with_answer("q4", {"noul": None}),
        with_answer("q4", {"noul": 1.5}),
        with_answer("q4", {"noul": "yes"}),
        with_answer("q4", {"probabilities": {"yes": 1}}),
        with_answer("q4", {"type": "skipped"}),
        b'{"answers": {"q4": {"noul": NaN}}}',
    ],
    ids=str,
)
def test_a_reply_without_a_probability_for_each_question_is_a_bad_one(reply: Any) -> None:
    with pytest.raises(BadReply):
        decide(KIND, reply, asking(*ALL))


@pytest.mark.parametrize(
    ("status", "reply", "failure"),
    [
        (400, error("bad"), Refused),
        (401, error("no"), KeyRefused),
        (402, error("no"), NoCredit),
        (404, error("The model does not exist", code="model_not_found"), Gone),
        (422, error("question q1: at most 255 options"), Refused),
        (429, error("slow"), Throttled),
        (500, error("oops"), ServerTrouble),
        (501, error("no such thing"), Refused),
        (503, b"", ServerTrouble),
        (200, error("oops", type="server_error"), ServerTrouble),
    ],
)
def test_an_error_is_what_it_means_for_every_protocol(
    status: int, reply: Any, failure: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as raised:
        decide(KIND, reply, asking(), status)
    assert type(raised.value) is failure


def test_no_error_is_taken_for_missing_log_probabilities() -> None:
    with pytest.raises(ProviderError) as raised:
        decide(KIND, error("logprobs and response_format are unknown"), asking(), 400)
    assert not isinstance(raised.value, NoLogprobs)


def test_an_error_is_logged_without_the_words_that_were_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(Refused):
        decide(KIND, error("odd state: charged twice; odd option billing"), asking(), 400)
    assert "odd" in caplog.text
    for word in ("charged", "billing", "twice"):
        assert word not in caplog.text


def test_what_the_server_calls_its_model_is_read() -> None:
    with serving(KIND, {**ANSWERS, "model": "decider-1.2"}) as (_, client):
        assert client.call(MODEL, asking(), 30.0).served_by == "decider-1.2"
