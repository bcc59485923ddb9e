"""Random and mutated requests: never a server error, and every answer keeps its promises."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.app import create_app
from svc.bootstrap import Services

EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(["auto", "verbal", "@key", "none_of_these", "", "choice", "text", "svc-1.0.0"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)

WHOLE: dict[str, Any] = {
    "state": {"plan": "pro", "amount": 12, "text": "I want my money back"},
    "model": {"cascade": ["@demo/lexical", "@demo/lexical"], "escalate_below": 0.7},
    "mode": "auto",
    "debias": True,
    "think": False,
    "project": "default",
    "config": "svc-1.1.0",
    "privacy": "standard",
    "explain": False,
    "images": ["https://x.example/i.png"],
    "questions": {
        "z": {
            "type": "choice",
            "instructions": "Which?",
            "options": {"a": "money", "b": ""},
            "escape": True,
            "min_confidence": 0.5,
            "coverage": 0.9,
            "examples": [{"state": {"a": 1}, "label": "a"}],
            "rules": [{"if": {"amount": {"gt": 99}}, "answer": "b"}],
        },
        "y": {"type": "score", "instructions": "How?", "levels": ["low", "high"]},
        "x": {"type": "noul", "instructions": "Is it?", "when": {"plan": ["pro", "team"]}},
        "w": {"type": "multi", "instructions": "Which?", "options": {"a": ""}, "threshold": 0.5},
        "v": {"type": "text", "instructions": "What?", "max_length": 20, "nullable": True},
        "u": {"type": "number", "instructions": "What?", "min": 0, "max": 100},
        "t": {"type": "integer", "instructions": "What?", "depends_on": ["z"], "think": True},
    },
}


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """The whole request with a value replaced, removed or added in one to three places."""
    body = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = body
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and draw(st.integers(0, 3)):
                place = place[key]
                continue
            change = draw(st.sampled_from(["replace", "remove", "add"]))
            if change == "remove":
                del place[key]
            elif change == "add" and isinstance(place, dict):
                place[draw(TEXT)] = draw(JSON)
            else:
                place[key] = draw(JSON)
            break
    return body


@pytest.fixture(scope="module")
def sender(services: Services) -> FlaskClient:
    return create_app(services).test_client()


@EXAMPLES
@given(body=mutated(), criteria=st.booleans())
@pytest.mark.parametrize("path", ["/v1/decide", "/v1/systemone"])
def test_a_mutated_request_is_answered_or_refused(
    sender: FlaskClient, path: str, body: dict[str, Any], criteria: bool
) -> None:
    if criteria and path == "/v1/systemone":
        say_criteria(body)
    response = sender.post(path, data=json.dumps(body))
    found = json.loads(response.data)
    # A model that the demonstration does not have is the caller's doing, and a 502.
    strange = body.get("model") != WHOLE["model"]
    assert response.status_code in ((200, 400, 422, 502) if strange else (200, 400, 422))
    if response.status_code != 200:
        assert set(found["error"]) == {"type", "message"}
        return
    assert list(found["answers"]) == list(body["questions"])
    for key, answer in found["answers"].items():
        if "skipped" not in answer:
            escapes = body["questions"][key].get("escape", path == "/v1/decide")
            assert_kept(body["questions"][key], answer, escapes)


def say_criteria(body: dict[str, Any]) -> None:
    """Put options and levels where the other route's clients have them."""
    questions = body.get("questions")
    for question in questions.values() if isinstance(questions, dict) else ():
        for field in ("options", "levels"):
            if isinstance(question, dict) and field in question:
                question["criteria"] = question.pop(field)


@EXAMPLES
@given(body=JSON)
def test_any_json_is_answered_or_refused(sender: FlaskClient, body: Any) -> None:
    for path in ("/v1/decide", "/v1/systemone"):
        assert sender.post(path, data=json.dumps(body)).status_code in (400, 422)


@EXAMPLES
@given(body=st.binary(max_size=200))
def test_any_bytes_are_refused(sender: FlaskClient, body: bytes) -> None:
    assert sender.post("/v1/decide", data=body).status_code in (400, 422)


def assert_kept(question: dict[str, Any], answer: dict[str, Any], escapes: bool) -> None:
    """What the contract promises of an answer of each type.

    `escapes` says whether "none of these" is among the options of a choice.
    """
    kind = question["type"]
    numbers = answer.get("probabilities", [answer.get("noul", answer.get("confidence"))])
    if kind == "score" and isinstance(numbers, dict):  # as the other route says it
        assert list(numbers) == list(answer["legend"]) == [str(i) for i in range(len(numbers))]
        numbers = list(numbers.values())
    listed = list(numbers.values()) if isinstance(numbers, dict) else numbers
    assert all(0 <= p <= 1 for p in listed)
    assert isinstance(answer["calibrated"], bool)
    if kind in ("choice", "score"):
        assert math.fsum(listed) == pytest.approx(1, abs=1e-9)
        assert answer["confidence"] == max(listed)
    if kind == "choice":
        assert numbers[answer["choice"]] == max(listed)
        expected = list(question["criteria"] if "criteria" in question else question["options"])
        assert list(numbers) == [*expected, *(["none_of_these"] if escapes else [])]
    if kind == "score":
        expected_level = math.fsum(i * p for i, p in enumerate(listed))
        assert answer["score"] == pytest.approx(expected_level, abs=1e-6)
    if kind == "multi":
        chosen = [k for k, p in numbers.items() if p >= question.get("threshold", 0.5)]
        assert answer["selected"] == chosen


def test_the_request_that_is_mutated_is_good(sender: FlaskClient) -> None:
    response = sender.post("/v1/decide", data=json.dumps(WHOLE))
    assert response.status_code == 200
    answers = json.loads(response.data)["answers"]
    assert [answer["stage"] for answer in answers.values()] == [0, 0, 0, 0, 0, 0, 1]
