"""Servers of the decisions API: what they are asked, and how they answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from svc.providers.decisions import LEVELS, DecisionsProtocol
from svc.providers.failures import (
    BadReply,
    Gone,
    KeyRefused,
    NoCredit,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
    Unanswerable,
)
from svc.questions.kit.base import SCORE, PlainQuestion
from tests.providers.deciding import ALL, BAD, MODEL, TEAM, TURNED, URGENT, asking, decide, serving
from tests.scripted import error

KIND = "decisions"


def listed(**shares: Any) -> list[dict[str, Any]]:
    return [{"value": value, "probability": p} for value, p in shares.items()]


TEAM_SHARES = listed(billing=0.7, access=0.2, other=0.1)
LEVEL_SHARES = [{"value": n, "probability": p} for n, p in enumerate((0.1, 0.3, 0.6))]
REPLY: dict[str, Any] = {
    "object": "decision",
    "answers": [
        {"type": "choice", "value": "billing", "probabilities": TEAM_SHARES},
        {"type": "choice", "value": "billing", "probabilities": TEAM_SHARES[::-1]},
        {"type": "score", "value": 1.5, "probabilities": LEVEL_SHARES},
        {"type": "predicate", "probability": 0.8},
    ],
    "usage": {"input_tokens": 70, "output_tokens": 3, "total_tokens": 73},
}


def replying(*answers: Any) -> dict[str, Any]:
    return {"answers": list(answers)}


def test_a_server_that_reads_everything_anew_for_each_question_is_believed() -> None:
    used = {"input_tokens": 4 * 95_000, "output_tokens": 3, "total_tokens": 380_003}
    with serving(KIND, {**REPLY, "usage": used}) as (_, client):
        assert client.call(MODEL, asking(), 30.0).input_tokens == 380_000


def test_every_question_is_asked_in_order_with_its_choices_or_levels() -> None:
    with serving(KIND, REPLY) as (server, client):
        client.call(MODEL, asking(), 30.0)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/decisions")
    assert request.headers["authorization"] == "Bearer k-1"
    choices = [
        {"value": "billing", "description": "Invoices"},
        {"value": "access"},
        {"value": "other"},
    ]
    assert request.body == {
        "model": "decider/1",
        "input": "charged twice",
        "questions": [
            {"type": "choice", "instructions": "Which team?", "choices": choices},
            {"type": "choice", "instructions": "Which team?", "choices": choices[::-1]},
            {
                "type": "score",
                "instructions": "How bad?",
                "levels": [{"label": "low"}, {"label": "mid"}, {"label": "high"}],
            },
            {"type": "predicate", "instructions": "Is it urgent?"},
        ],
    }


def test_images_go_beside_the_state() -> None:
    with serving(KIND, replying({"probability": 0.5})) as (server, client):
        client.call(MODEL, asking(URGENT, images=("https://a.example/1.png",)), 30.0)
    assert server.bodies[0]["input"] == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "charged twice"},
                {"type": "input_image", "image_url": "https://a.example/1.png"},
            ],
        }
    ]


def test_answers_are_read_by_the_positions_of_the_question_whatever_the_order() -> None:
    found = decide(KIND, REPLY, asking())
    assert found.decided == (
        {0: 0.7, 1: 0.2, 2: 0.1},
        {0: 0.7, 1: 0.2, 2: 0.1},
        {0: 0.1, 1: 0.3, 2: 0.6},
        {0: 0.8, 1: pytest.approx(0.2)},
    )
    assert (found.text, found.tokens, found.cut) == ("", None, False)
    assert (found.input_tokens, found.output_tokens) == (70, 3)


@pytest.mark.parametrize(
    "shares",
    [
        listed(access=0.6, stranger=0.4),
        listed(billing=0.7, access=0.3),
        listed(billing=0.6, access=0.2, other=0.1, stranger=0.1),
        [*listed(billing=0.7, access=0.2, other=0.1), *listed(other=0.0)],
        [*listed(billing=0.7, access=0.2), *listed(access=0.1)],
        [*TEAM_SHARES, {"value": 0, "probability": 0.0}],
        [*TEAM_SHARES, {"value": None, "probability": 0.0}],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("question", [TEAM, TURNED], ids=["team", "turned"])
def test_choices_that_are_missing_or_too_many_or_doubled_are_a_bad_reply(
    question: PlainQuestion, shares: list[dict[str, Any]]
) -> None:
    with pytest.raises(BadReply):
        decide(KIND, replying({"probabilities": shares}), asking(question))


class Unhashed:
    """A value that may not become a key: of numbers with one hash a dict compares all."""

    def __hash__(self) -> int:
        raise AssertionError("it was looked up")


def test_more_probabilities_than_choices_are_refused_before_any_is_looked_up() -> None:
    shares = [{"value": Unhashed(), "probability": 0.0} for _ in range(3)]
    payload = {"answers": [{"type": "choice", "probabilities": shares}]}
    call = asking(replace(TEAM, options=TEAM.options[:2], positions=TEAM.positions[:2]))
    with pytest.raises(BadReply):
        DecisionsProtocol().read(payload, call)


def levels(*values: Any) -> list[dict[str, Any]]:
    return [{"value": value, "probability": 1 / len(values)} for value in values]


@pytest.mark.parametrize(
    "values",
    [
        (0, 1),
        (1, 2, 3),
        (0, 1, 2, 3),
        (0, 1, 1),
        (0, 1, 2, 2),
        (0, 1, 2, 2.0),
        (False, True, 2),
        (0, True, 2),
        (0, 1, True, 2),
        ("0", "1", "2"),
        ("low", "mid", "high"),
        (0, 1, 2.5),
        (0, 1, None),
    ],
    ids=str,
)
def test_levels_that_are_not_exactly_those_asked_for_are_a_bad_reply(values: Any) -> None:
    with pytest.raises(BadReply):
        decide(KIND, replying({"probabilities": levels(*values)}), asking(BAD))


def test_levels_are_read_by_their_number_whatever_the_order() -> None:
    found = decide(KIND, replying({"probabilities": LEVEL_SHARES[::-1]}), asking(BAD))
    assert found.decided == ({0: 0.1, 1: 0.3, 2: 0.6},)


@pytest.mark.parametrize("total", [0.981, 1.0, 1.019])
def test_probabilities_may_sum_to_one_but_for_rounding(total: float) -> None:
    shares = listed(billing=total - 0.3, access=0.2, other=0.1)
    found = decide(KIND, replying({"probabilities": shares}), asking(TEAM))
    assert found.decided == ({0: pytest.approx(total - 0.3), 1: 0.2, 2: 0.1},)


@pytest.mark.parametrize("total", [0.3, 0.979, 1.021, 1.3])
def test_probabilities_that_sum_to_another_number_are_a_bad_reply(total: float) -> None:
    shares = listed(billing=total - 0.3, access=0.2, other=0.1)
    with pytest.raises(BadReply):
        decide(KIND, replying({"probabilities": shares}), asking(TEAM))
    third = [{"value": n, "probability": total / 3} for n in range(3)]
    with pytest.raises(BadReply):
        decide(KIND, replying({"probabilities": third}), asking(BAD))


def test_a_refused_question_is_a_refusal_of_the_call() -> None:
    for answer in ({"type": "refusal", "refusal": "I cannot"}, {"type": "refusal"}):
        with pytest.raises(Refused):
            decide(KIND, replying(answer, {"probability": 0.5}), asking(URGENT, URGENT))


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("kind", ["decisions", "systemone"])
def test_a_reply_that_answers_nothing_states_its_usage_all_the_same(kind: str, status: int) -> None:
    refused = replying({"type": "refusal"})
    with pytest.raises(ProviderError) as raised:
        decide(kind, {**refused, "usage": REPLY["usage"]}, asking(URGENT), status)
    assert raised.value.usage == (70, 3, None)
    assert raised.value.may_be_charged


def test_more_levels_than_such_a_server_takes_are_refused_without_a_call() -> None:
    def question(count: int) -> PlainQuestion:
        levels = tuple((f"level {n}", "") for n in range(count))
        return PlainQuestion(SCORE, "How bad?", levels, tuple(range(count)))

    shares = [{"value": n, "probability": 1 / LEVELS} for n in range(LEVELS)]
    with serving(KIND, replying({"probabilities": shares})) as (server, client):
        assert len(client.call(MODEL, asking(question(LEVELS)), 30.0).decided[0]) == LEVELS
        with pytest.raises(Unanswerable, match=f"at most {LEVELS} levels"):
            client.call(MODEL, asking(question(LEVELS + 1)), 30.0)
        assert len(server.requests) == 1


def test_what_cannot_be_answered_is_told_to_the_caller_in_our_words() -> None:
    seen = Unanswerable("a decisions server takes at most 10 levels").as_api_error()
    assert seen.message == "a decisions server takes at most 10 levels"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        {},
        [],
        {"answers": None},
        {"answers": {}},
        {"answers": []},
        {"answers": REPLY["answers"][:3]},
        {"answers": [*REPLY["answers"], {"probability": 0.5}]},
    ],
    ids=str,
)
def test_a_reply_without_one_answer_for_each_question_is_a_bad_one(reply: Any) -> None:
    with pytest.raises(BadReply):
        decide(KIND, reply, asking(*ALL))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (TEAM, None),
        (TEAM, 5),
        (TEAM, []),
        (TEAM, {}),
        (TEAM, {"probabilities": None}),
        (TEAM, {"probabilities": {"billing": 0.7}}),
        (TEAM, {"probabilities": [0.7, 0.3]}),
        (TEAM, {"probabilities": [*TEAM_SHARES[:2], {"value": "other"}]}),
        (TEAM, {"probabilities": [*TEAM_SHARES[:2], {"probability": 0.1}]}),
        (TEAM, {"probabilities": [*TEAM_SHARES, {"value": [], "probability": 0}]}),
        (TEAM, {"probabilities": listed(billing=70, access=20, other=10)}),
        (TEAM, {"probabilities": listed(billing="0.7", access=0.2, other=0.1)}),
        (TEAM, {"probabilities": listed(billing=None, access=0.2, other=0.8)}),
        (TEAM, {"probabilities": listed(billing=True, access=0, other=0)}),
        (
            BAD,
            {"probabilities": [{"value": n, "probability": p} for n, p in enumerate((-1, 1, 1))]},
        ),
        (URGENT, None),
        (URGENT, {}),
        (URGENT, {"probability": None}),
        (URGENT, {"probability": "0.8"}),
        (URGENT, {"probability": 1.01}),
        (URGENT, {"probabilities": listed(yes=0.8)}),
    ],
    ids=str,
)
def test_an_answer_without_usable_probabilities_is_a_bad_reply(
    question: PlainQuestion, answer: Any
) -> None:
    with pytest.raises(BadReply):
        decide(KIND, replying(answer), asking(question))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1", "2"])
def test_a_number_that_is_no_probability_is_a_bad_reply(number: str) -> None:
    reply = '{"answers": [{"probability": %s}]}' % number  # noqa: UP031
    with pytest.raises(BadReply):
        decide(KIND, reply.encode(), asking(URGENT))


@pytest.mark.parametrize(
    ("status", "reply", "failure"),
    [
        (400, error("bad"), Refused),
        (401, error("no"), KeyRefused),
        (402, error("no"), NoCredit),
        (404, error("The model does not exist", code="model_not_found"), Gone),
        (429, error("no", code="insufficient_quota"), NoCredit),
        (429, error("slow"), Throttled),
        (500, error("oops"), ServerTrouble),
        (501, b"", Refused),
    ],
)
def test_an_error_is_what_it_means_for_every_protocol(
    status: int, reply: Any, failure: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as raised:
        decide(KIND, reply, asking(), status)
    assert type(raised.value) is failure


def test_what_the_server_calls_its_model_is_read() -> None:
    with serving(KIND, {**REPLY, "model": "decider-1.2"}) as (_, client):
        assert client.call(MODEL, asking(), 30.0).served_by == "decider-1.2"
