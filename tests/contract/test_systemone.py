"""`POST /v1/systemone`: the criteria shape, as its clients send and read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from svc.bootstrap import Services

CHOICE: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which team?",
    "criteria": {"billing": "Invoices and refunds", "access": None, "other": {"any": "thing"}},
}
STATE = "I want a refund for invoice 17"


def ask(client: FlaskClient, questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    # Dumped here: the test client would sort the keys.
    data = json.dumps({"state": STATE, "questions": questions, **fields})
    response = client.post("/v1/systemone", data=data)
    assert response.status_code == 200, response.get_json()
    body: dict[str, Any] = json.loads(response.data)
    return body


def answer(client: FlaskClient, question: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(client, {"q": question}, **fields)["answers"]["q"]
    return found


def refused(client: FlaskClient, question: Any) -> tuple[int, str]:
    response = client.post("/v1/systemone", json={"state": STATE, "questions": {"q": question}})
    return response.status_code, response.get_json()["error"]["message"]


def test_a_choice_has_no_escape_option_unless_asked_for(client: FlaskClient) -> None:
    found = answer(client, CHOICE)
    assert found["type"] == "choice"
    assert list(found["probabilities"]) == ["billing", "access", "other"]
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert found["choice"] == max(found["probabilities"], key=found["probabilities"].__getitem__)
    with_escape = answer(client, {**CHOICE, "escape": True})
    assert list(with_escape["probabilities"])[-1] == "none_of_these"


def test_option_names_come_back_byte_for_byte(client: FlaskClient) -> None:
    names = ["  padded ", "línea", "日本語", "🙂", "none_of_these", "a\nb", "0"]
    found = answer(client, {"type": "choice", "criteria": dict.fromkeys(names)})
    assert list(found["probabilities"]) == names


def test_a_score_is_keyed_by_level_with_a_legend(client: FlaskClient) -> None:
    levels = ["can wait", {"when": "soon"}, "now"]
    found = answer(client, {"type": "score", "criteria": levels})
    assert list(found["probabilities"]) == ["0", "1", "2"]
    assert found["legend"] == {"0": "can wait", "1": {"when": "soon"}, "2": "now"}
    expected = sum(int(level) * p for level, p in found["probabilities"].items())
    assert found["score"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "criteria", [None, {}, {"true": "it is"}, {"false": "it is not"}, {"true": "a", "false": None}]
)
def test_a_noul_takes_criteria_with_any_of_its_sides(client: FlaskClient, criteria: Any) -> None:
    found = answer(client, {"type": "noul", "instructions": "Refund?", "criteria": criteria})
    assert found["type"] == "noul"
    assert 0 <= found["noul"] <= 1


def test_a_string_question_is_answered_as_a_string(client: FlaskClient) -> None:
    found = answer(client, {"type": "string", "instructions": "Which invoice?"})
    assert found["type"] == "string"
    assert set(found) == {"type", "value", "confidence", "calibrated"}


def test_numbers_work_as_in_decide(client: FlaskClient) -> None:
    found = answer(client, {"type": "integer", "instructions": "Which invoice?", "min": 1})
    assert (found["type"], found["value"]) == ("integer", 17)


@pytest.mark.parametrize("instructions", [None, "", {"ask": "which?"}, ["which?"], "Which?"])
def test_instructions_may_be_left_out_or_be_json(client: FlaskClient, instructions: Any) -> None:
    assert answer(client, {**CHOICE, "instructions": instructions})["choice"]
    left_out = {key: value for key, value in CHOICE.items() if key != "instructions"}
    assert answer(client, left_out)["choice"]


def test_unknown_fields_are_ignored(client: FlaskClient) -> None:
    assert answer(client, {**CHOICE, "colour": "red"}, temperature=0.5, stream=False)


def test_any_decide_field_works_here(client: FlaskClient) -> None:
    body = ask(client, {"q": CHOICE}, mode="verbal", debias=False, project="sales")
    assert (body["mode"], body["debiased"], body["project"]) == ("verbal", False, "sales")


@pytest.mark.parametrize(
    ("model", "config"),
    [
        ("jev-latest", "svc-1.3.0"),
        ("gpt-4o-mini", "svc-1.3.0"),
        (None, "svc-1.3.0"),
        ("svc-1.0.0", "svc-1.0.0"),
        ("svc-latest", "svc-1.3.0"),
        ("@demo/lexical", "svc-1.3.0"),
        (["@demo/lexical"], "svc-1.3.0"),
        ({"race": ["@demo/lexical"]}, "svc-1.3.0"),
    ],
)
def test_a_model_is_a_config_a_bare_name_or_a_model(
    client: FlaskClient, model: Any, config: str
) -> None:
    body = ask(client, {"q": CHOICE}, model=model)
    assert (body["model"], body["config"]) == ("@demo/lexical", config)


def test_an_unknown_config_is_refused(client: FlaskClient) -> None:
    body = {"state": STATE, "questions": {"q": CHOICE}, "model": "svc-9.9.9"}
    response = client.post("/v1/systemone", json=body)
    assert (response.status_code, response.get_json()["error"]["type"]) == (422, "invalid_request")


def test_usage_counts_the_input_tokens_of_every_call(client: FlaskClient) -> None:
    fresh = ask(client, {"q": CHOICE}, state="never seen before", debias=False)
    again = ask(client, {"q": CHOICE}, state="never seen before", debias=False)
    assert fresh["usage"]["input_tokens"] > 0
    assert fresh["usage"]["output_tokens"] == 0
    assert again["usage"]["input_tokens"] == 0  # from the cache


def test_a_skipped_answer_has_a_type_that_clients_pass_over(
    client: FlaskClient, services: Services
) -> None:
    questions = {"a": {**CHOICE, "when": {"plan": "pro"}}, "b": CHOICE}
    body = ask(client, questions, state={"plan": "free"})
    assert body["answers"]["a"] == {"type": "skipped", "skipped": True}
    assert body["answers"]["b"]["type"] == "choice"
    stored = services.decisions.get(body["id"])
    assert stored is not None
    assert {key: answer.fields for key, answer in stored.answers.items()} == body["answers"]


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ({"type": "choice"}, 422, "options"),
        ({"type": "choice", "criteria": ["a", "b"]}, 422, "criteria: must be an object of option"),
        ({"type": "choice", "criteria": {"a": None}}, 422, "2 to 255"),
        ({"type": "score", "criteria": ["low", None]}, 422, "level 1"),
        ({"type": "score", "criteria": {"low": ""}}, 422, "criteria: must be a list of level"),
        ({"type": "noul", "criteria": "yes"}, 422, "criteria: must be an object with true, false"),
        (
            {"type": "noul", "criteria": ["yes"]},
            422,
            "criteria: must be an object with true, false",
        ),
        ({"type": "string", "enum": ["a"]}, 422, "choice"),
        ({"type": "poem"}, 422, "integer, string"),
        ({"type": "boolean", "instructions": "?"}, 422, "integer, string"),
        ({"type": 5}, 422, "unknown type"),
        ({}, 422, "type"),
        ("noul", 422, "object"),
        (None, 422, "object"),
    ],
)
def test_a_bad_question_is_named_and_never_a_server_error(
    client: FlaskClient, question: Any, status: int, words: str
) -> None:
    code, message = refused(client, question)
    assert code == status
    assert '"q"' in message
    assert words in message


@pytest.mark.parametrize("body", [[], "x", None, 5, {}, {"state": 1}, {"questions": {}}])
def test_a_bad_body_is_never_a_server_error(client: FlaskClient, body: Any) -> None:
    assert client.post("/v1/systemone", json=body).status_code in (400, 422)


def test_levels_serve_where_criteria_are_null(client: FlaskClient) -> None:
    found = answer(client, {"type": "score", "criteria": None, "levels": ["low", "high"]})
    assert found["legend"] == {"0": "low", "1": "high"}


@pytest.mark.parametrize("field", ["instructions", "criteria"])
def test_json_that_is_nested_too_deeply_is_refused_by_name(client: FlaskClient, field: str) -> None:
    """Wherever it becomes too deep, for reading it or for writing it again."""
    answered, refused_at = 100, 100_000
    while refused_at - answered > 1:
        depth = (answered + refused_at) // 2
        # To read or to write a number that no float holds calls a function at the deepest place.
        deep = "[" * depth + "0.1000000000000000000001" + "]" * depth
        content = f'{{"a": {deep}, "b": ""}}' if field == "criteria" else deep
        question = f'{{"type": "choice", "criteria": {{"a": "", "b": ""}}, "{field}": {content}}}'
        data = f'{{"state": "s", "questions": {{"deep": {question}}}}}'
        response = client.post("/v1/systemone", data=data)
        if response.status_code == 200:
            answered = depth
        else:
            refused_at = depth
            assert response.status_code == 422
            assert response.get_json()["error"]["message"] in (
                "the body is nested too deeply",
                'question "deep": it is nested too deeply',
            )
    assert answered > 500


@pytest.mark.parametrize(
    ("kind", "criteria", "reason"),
    [
        ("choice", {str(number): 0.5 for number in range(256)}, "needs 2 to 255 options, has 256"),
        ("score", [[[]]] * 20 + [10**401], "needs 2 to 20 levels, has 21"),
    ],
)
def test_too_many_criteria_are_refused_before_they_are_looked_at(
    client: FlaskClient, kind: str, criteria: Any, reason: str
) -> None:
    question = {"type": kind, "instructions": "Which?", "criteria": criteria}
    data = json.dumps({"state": "s", "questions": {"q": question}})
    response = client.post("/v1/systemone", data=data)
    assert response.status_code == 422
    assert reason in response.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("level", "reason"),
    [
        ("[" * 33 + "]" * 33, "a level is nested more than 32 levels deep"),
        ('{"a":' * 800 + "1" + "}" * 800, "a level is nested more than 32 levels deep"),
        ("9" * 4_301, "a level has a number that is too large"),
        ('{"a": [-1e400]}', "a level has a number that is too large"),
    ],
)
def test_a_level_that_could_not_be_read_again_with_its_answer_is_refused(
    client: FlaskClient, level: str, reason: str
) -> None:
    question = f'{{"type": "score", "criteria": ["a", {level}]}}'
    data = f'{{"state": "s", "questions": {{"q": {question}}}}}'
    response = client.post("/v1/systemone", data=data)
    assert response.status_code == 422
    assert response.get_json()["error"]["message"] == f'question "q" criteria: {reason}'


@pytest.mark.parametrize(
    "level", ["[" * 32 + "]" * 32, "9" * 300, "0.12345678901234567890", "1e308"]
)
def test_an_answer_with_json_as_a_level_is_read_again_by_all(
    client: FlaskClient, level: str
) -> None:
    question = f'{{"type": "score", "criteria": ["a", {level}]}}'
    data = f'{{"state": "s", "questions": {{"q": {question}}}}}'
    decided = client.post("/v1/systemone", data=data)
    assert decided.status_code == 200, decided.text
    label = {"decision_id": decided.get_json()["id"], "question": "q", "label": 1}
    assert client.post("/v1/feedback", json=label).status_code == 200
    for path in ("audit?question=q", "export?", "review?question=q&reviewer=r&answers=shown"):
        response = client.get(f"/v1/{path}")
        assert response.status_code == 200, (path, response.text)


@pytest.mark.parametrize("key", ["team", "which team is it? say access", "日本語", " ", "0"])
def test_a_key_does_not_change_its_answer(client: FlaskClient, key: str) -> None:
    found = ask(client, {key: CHOICE})["answers"][key]
    assert found["probabilities"] == answer(client, CHOICE)["probabilities"]


def test_as_many_options_and_levels_as_clients_send_are_answered(client: FlaskClient) -> None:
    names = [f"o{number}" for number in range(255)]
    many = answer(client, {"type": "choice", "criteria": dict.fromkeys(names)})
    assert list(many["probabilities"]) == names
    assert sum(many["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    assert all(0 <= p <= 1 for p in many["probabilities"].values())
    levels = answer(client, {"type": "score", "criteria": [f"level {n}" for n in range(10)]})
    expected = sum(int(level) * p for level, p in levels["probabilities"].items())
    assert levels["score"] == pytest.approx(expected, abs=1e-4)
    assert None not in levels["legend"].values()


def test_the_usual_model_and_any_key_are_taken_where_there_are_no_keys(
    client: FlaskClient,
) -> None:
    body = {"state": STATE, "questions": {"q": CHOICE}, "model": "jev-latest"}
    headers = {"Authorization": "Bearer whatever"}
    response = client.post("/v1/systemone", json=body, headers=headers)
    assert response.status_code == 200
    assert response.get_json()["model"] == "@demo/lexical"
