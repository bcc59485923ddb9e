"""The contract's tables of errors and limits, row by row: what is refused, how, and what passes.

Each row is a change to one good request. Read `REFUSED` as the table of section 7 and `ALLOWED`
as the far ends of section 8.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from flask.testing import FlaskClient

Body = dict[str, Any]

CHOICE: Body = {"type": "choice", "instructions": "Which team?", "options": {"a": "", "b": ""}}
SCORE: Body = {"type": "score", "instructions": "How urgent?", "levels": ["low", "high"]}
NOUL: Body = {"type": "noul", "instructions": "Is it urgent?"}
MULTI: Body = {"type": "multi", "instructions": "Which topics?", "options": {"a": "", "b": ""}}
TEXT: Body = {"type": "text", "instructions": "Which name?"}
NUMBER: Body = {"type": "number", "instructions": "How much?"}
INTEGER: Body = {"type": "integer", "instructions": "How many?"}
PNG = "data:image/png;base64,"


def ask(question: Body, **fields: Any) -> Body:
    """A request with one question `q`; fields of None are left out."""
    body = {"state": {"plan": "pro"}, "questions": {"q": question}, **fields}
    return {name: value for name, value in body.items() if value is not ...}


def options(count: int) -> Body:
    return {f"o{index}": "" for index in range(count)}


def image(size: int) -> str:
    return PNG + base64.b64encode(b"x" * size).decode()


def chain(length: int) -> Body:
    """Questions that each wait for the one before."""
    first = {"s0": NOUL}
    return first | {f"s{i}": {**NOUL, "depends_on": [f"s{i - 1}"]} for i in range(1, length)}


def rule(condition: Any, answer: Any = True) -> Body:
    return {**NOUL, "rules": [{"if": {"plan": condition}, "answer": answer}]}


# (status, type, words of the message that a person can act on, request)
REFUSED: dict[str, tuple[int, str, list[str], Any]] = {
    # 400: not JSON of a known form
    "a body that is no object": (400, "invalid_json", ["object"], []),
    "an unknown mode": (400, "invalid_json", ["fast", "verbal"], ask(NOUL, mode="fast")),
    "an unknown type": (400, "invalid_json", ['"q"', "poem", "noul"], ask({"type": "poem"})),
    # 422: the request as a whole
    "no state": (422, "invalid_request", ["state", "required"], ask(NOUL, state=...)),
    "no questions": (422, "invalid_request", ["questions"], {"state": "x"}),
    "a state too large": (422, "invalid_request", ["150,000"], ask(NOUL, state="x" * 150_001)),
    "a large object state": (422, "invalid_request", ["150,000"], ask(NOUL, state=["x"] * 50_000)),
    "0 questions": (422, "invalid_request", ["1 to 64"], {"state": "x", "questions": {}}),
    "65 questions": (
        422,
        "invalid_request",
        ["64", "65"],
        {"state": "x", "questions": {str(i): NOUL for i in range(65)}},
    ),
    "too much question text": (
        422,
        "invalid_request",
        ["100,000"],
        ask({**NOUL, "instructions": "x" * 100_001}),
    ),
    "a control character in a key": (
        422,
        "invalid_request",
        ["control"],
        {"state": "x", "questions": {"a\u0001": NOUL}},
    ),
    "an unknown field": (422, "invalid_request", ["debiased"], ask(NOUL, debiased=True)),
    "an unknown field of a question": (
        422,
        "invalid_request",
        ['"q"', "min_confidense"],
        ask({**CHOICE, "min_confidense": 0.5}),
    ),
    "an unknown config": (422, "invalid_request", ["svc-1.2.0"], ask(NOUL, config="svc-2.0.0")),
    "an unknown privacy": (422, "invalid_request", ["strict"], ask(NOUL, privacy="secret")),
    "a debias of another kind": (422, "invalid_request", ["auto"], ask(NOUL, debias="maybe")),
    "a think of another kind": (422, "invalid_request", ["think"], ask(NOUL, think=1)),
    "an empty project": (422, "invalid_request", ["project"], ask(NOUL, project="")),
    # 422: models
    "a model of no form": (422, "invalid_request", ["model"], ask(NOUL, model=5)),
    "an empty chain": (422, "invalid_request", ["model"], ask(NOUL, model=[])),
    "a council of one": (
        422,
        "invalid_request",
        ["2 to 5", "1"],
        ask(NOUL, model={"council": ["@demo/lexical"]}),
    ),
    "a council of six": (
        422,
        "invalid_request",
        ["2 to 5", "6"],
        ask(NOUL, model={"council": ["@demo/lexical"] * 6}),
    ),
    "an escalate_below over 1": (
        422,
        "invalid_request",
        ["escalate_below", "0 to 1"],
        ask(NOUL, model={"cascade": ["@demo/lexical"], "escalate_below": 1.5}),
    ),
    "two plans at once": (
        422,
        "invalid_request",
        ["model"],
        ask(NOUL, model={"race": ["@demo/lexical"], "council": ["@demo/lexical"] * 2}),
    ),
    "a provider that is not configured": (
        422,
        "invalid_request",
        ["nowhere", "demo", "hosted"],
        ask(NOUL, model="@nowhere/m"),
    ),
    "a plain id without a default provider": (
        422,
        "invalid_request",
        ["demo", "hosted"],
        ask(NOUL, model="vendor/model"),
    ),
    "a provider missing from one place of a plan": (
        422,
        "invalid_request",
        ["nowhere"],
        ask(NOUL, model={"cascade": ["@demo/lexical", "@nowhere/m"]}),
    ),
    "strict on a hosted named provider": (
        422,
        "invalid_request",
        ["strict", "hosted"],
        ask(NOUL, model="@hosted/m", privacy="strict"),
    ),
    "a plan of over 64 calls": (
        422,
        "invalid_request",
        ["80", "64"],
        {
            "state": "x",
            "questions": chain(8),
            "model": {"council": ["@demo/lexical"] * 5},
            "debias": True,
        },
    ),
    # 422: logprobs mode
    "logprobs with text": (
        422,
        "invalid_request",
        ['"q"', "logprobs"],
        ask(TEXT, mode="logprobs"),
    ),
    "logprobs with number": (
        422,
        "invalid_request",
        ['"q"', "logprobs"],
        ask(NUMBER, mode="logprobs"),
    ),
    "logprobs with integer": (
        422,
        "invalid_request",
        ['"q"', "logprobs"],
        ask(INTEGER, mode="logprobs"),
    ),
    "logprobs with think": (
        422,
        "invalid_request",
        ["logprobs", "think"],
        ask(NOUL, mode="logprobs", think=True),
    ),
    "logprobs with a question that thinks": (
        422,
        "invalid_request",
        ['"q"', "logprobs"],
        ask({**NOUL, "think": True}, mode="logprobs"),
    ),
    "logprobs with 21 options": (
        422,
        "invalid_request",
        ['"q"', "20 options"],
        ask({**CHOICE, "options": options(21)}, mode="logprobs"),
    ),
    # 422: options, levels, thresholds
    "1 option": (
        422,
        "invalid_request",
        ['"q"', "options", "2 to 255"],
        ask({**CHOICE, "options": options(1)}),
    ),
    "256 options": (
        422,
        "invalid_request",
        ['"q"', "options", "256"],
        ask({**CHOICE, "options": options(256)}),
    ),
    "the reserved option": (
        422,
        "invalid_request",
        ['"q"', "none_of_these"],
        ask({**CHOICE, "options": {"none_of_these": "", "b": ""}}),
    ),
    "0 options of a multi": (
        422,
        "invalid_request",
        ['"q"', "1 to 20"],
        ask({**MULTI, "options": {}}),
    ),
    "21 options of a multi": (
        422,
        "invalid_request",
        ['"q"', "1 to 20", "21"],
        ask({**MULTI, "options": options(21)}),
    ),
    "1 level": (422, "invalid_request", ['"q"', "2 to 20"], ask({**SCORE, "levels": ["x"]})),
    "21 levels": (
        422,
        "invalid_request",
        ['"q"', "2 to 20", "21"],
        ask({**SCORE, "levels": ["x"] * 21}),
    ),
    "a threshold over 1": (
        422,
        "invalid_request",
        ['"q"', "0 to 1"],
        ask({**MULTI, "threshold": 2}),
    ),
    "a min_confidence under 0": (
        422,
        "invalid_request",
        ['"q"', "min_confidence"],
        ask({**CHOICE, "min_confidence": -0.1}),
    ),
    "a min_confidence on noul": (
        422,
        "invalid_request",
        ['"q"', "min_confidence"],
        ask({**NOUL, "min_confidence": 0.5}),
    ),
    "a coverage of 0": (422, "invalid_request", ['"q"', "coverage"], ask({**NOUL, "coverage": 0})),
    "a coverage of 1": (
        422,
        "invalid_request",
        ['"q"', "coverage"],
        ask({**CHOICE, "coverage": 1}),
    ),
    "a coverage on score": (
        422,
        "invalid_request",
        ['"q"', "coverage"],
        ask({**SCORE, "coverage": 0.9}),
    ),
    # 422: extraction
    "a max_length of 0": (
        422,
        "invalid_request",
        ['"q"', "max_length", "1 to 2000"],
        ask({**TEXT, "max_length": 0}),
    ),
    "a max_length of 2001": (
        422,
        "invalid_request",
        ['"q"', "max_length", "1 to 2000"],
        ask({**TEXT, "max_length": 2001}),
    ),
    "a min above max": (
        422,
        "invalid_request",
        ['"q"', "min"],
        ask({**NUMBER, "min": 2, "max": 1}),
    ),
    "a min that is no number": (
        422,
        "invalid_request",
        ['"q"', "min"],
        ask({**NUMBER, "min": "1"}),
    ),
    "a fraction as bound of an integer": (
        422,
        "invalid_request",
        ['"q"', "max", "whole"],
        ask({**INTEGER, "max": 1.5}),
    ),
    # 422: examples
    "11 examples": (
        422,
        "invalid_request",
        ['"q"', "examples", "11"],
        ask({**NOUL, "examples": [{"state": "x", "label": True}] * 11}),
    ),
    "an example with a wrong label": (
        422,
        "invalid_request",
        ['"q"', "example 0", "option keys"],
        ask({**CHOICE, "examples": [{"state": "x", "label": "z"}]}),
    ),
    "examples on multi": (
        422,
        "invalid_request",
        ['"q"', "examples"],
        ask({**MULTI, "examples": []}),
    ),
    # 422: when and rules
    "when without an object state": (
        422,
        "invalid_request",
        ['"q"', "object"],
        ask({**NOUL, "when": {"plan": "pro"}}, state="text"),
    ),
    "rules without an object state": (
        422,
        "invalid_request",
        ['"q"', "object"],
        ask(rule("pro"), state="text"),
    ),
    "33 rules": (
        422,
        "invalid_request",
        ['"q"', "rules", "33"],
        ask({**NOUL, "rules": [{"if": {"plan": "pro"}, "answer": True}] * 33}),
    ),
    "an unknown operator": (
        422,
        "invalid_request",
        ['"q"', "rule 0", "matches", "contains"],
        ask(rule({"matches": "p.*"})),
    ),
    "two operators in one condition": (
        422,
        "invalid_request",
        ['"q"', "rule 0", "one operator"],
        ask(rule({"gt": 1, "lt": 5})),
    ),
    "a comparison with text": (
        422,
        "invalid_request",
        ['"q"', "rule 0", "number"],
        ask(rule({"gt": "1"})),
    ),
    "an invalid rule answer": (
        422,
        "invalid_request",
        ['"q"', "rule 0", "true or false"],
        ask(rule("pro", answer="yes")),
    ),
    # 422: dependencies
    "an unknown dependency": (
        422,
        "invalid_request",
        ['"q"', "other"],
        ask({**NOUL, "depends_on": ["other"]}),
    ),
    "an unknown @key": (
        422,
        "invalid_request",
        ['"q"', "other"],
        ask({**NOUL, "when": {"@other": True}}),
    ),
    "a dependency on itself": (
        422,
        "invalid_request",
        ['"q"', "itself"],
        ask({**NOUL, "depends_on": ["q"]}),
    ),
    "a cycle": (
        422,
        "invalid_request",
        ["cycle"],
        {
            "state": "x",
            "questions": {
                "a": {**NOUL, "depends_on": ["b"]},
                "b": {**NOUL, "depends_on": ["a"]},
            },
        },
    ),
    "9 stages": (422, "invalid_request", ['"s8"', "8"], {"state": "x", "questions": chain(9)}),
    "explain with depends_on": (
        422,
        "invalid_request",
        ["explain", "depends_on"],
        {"state": {"a": 1}, "questions": chain(2), "explain": True},
    ),
    # 422: images
    "9 images": (
        422,
        "invalid_request",
        ["images", "9"],
        ask(NOUL, images=["https://x.example/i.png"] * 9),
    ),
    "an image over http": (
        422,
        "invalid_request",
        ["image 1", "https"],
        ask(NOUL, images=["https://x.example/i.png", "http://x.example/i.png"]),
    ),
    "an image address too long": (
        422,
        "invalid_request",
        ["image 0", "2,048"],
        ask(NOUL, images=["https://x.example/" + "i" * 2_048]),
    ),
    "an image of another media type": (
        422,
        "invalid_request",
        ["image 0", "image/png"],
        ask(NOUL, images=["data:image/svg+xml;base64,AAAA"]),
    ),
    "an image that is no base64": (
        422,
        "invalid_request",
        ["image 0", "base64"],
        ask(NOUL, images=[PNG + "!!!!"]),
    ),
    "an image over 5 MB": (
        422,
        "invalid_request",
        ["image 0", "5 MB"],
        ask(NOUL, images=[image(5 * 1024 * 1024 + 1)]),
    ),
}

# The far ends of section 8, which all pass.
ALLOWED: dict[str, Body] = {
    "a state of 150,000 characters": ask(NOUL, state="x" * 150_000),
    "64 questions": {"state": "x", "questions": {str(i): NOUL for i in range(64)}},
    "another name of a type": ask({**NOUL, "type": "boolean"}),
    "2 options": ask({**CHOICE, "options": options(2)}),
    "255 options": ask({**CHOICE, "options": options(255)}),
    "20 options in logprobs mode": ask({**CHOICE, "options": options(20)}, mode="logprobs"),
    "1 option of a multi": ask({**MULTI, "options": options(1)}),
    "20 options of a multi": ask({**MULTI, "options": options(20)}),
    "20 levels": ask({**SCORE, "levels": [f"level {i}" for i in range(20)]}),
    "a council of 2": ask(NOUL, model={"council": ["@demo/lexical"] * 2}),
    "a council of 5": ask(NOUL, model={"council": ["@demo/lexical"] * 5}),
    "a max_length of 1": ask({**TEXT, "max_length": 1}),
    "a max_length of 2000": ask({**TEXT, "max_length": 2000}),
    "10 examples": ask({**NOUL, "examples": [{"state": "x", "label": True}] * 10}),
    "32 rules": ask({**NOUL, "rules": [{"if": {"plan": "x"}, "answer": True}] * 32}),
    "8 stages": {"state": "x", "questions": chain(8)},
    "8 images": ask(NOUL, images=["https://x.example/i.png"] * 8),
    "an image of 5 MB": ask(NOUL, images=[image(5 * 1024 * 1024)]),
    "an explain over 13 fields": ask(NOUL, state={str(i): i for i in range(13)}, explain=True),
    "64 calls": {
        "state": "x",
        "questions": chain(8),
        "model": {"council": ["@demo/lexical"] * 4},
    },
}


@pytest.mark.parametrize("row", REFUSED)
def test_a_refused_request_names_what_is_wrong(client: FlaskClient, row: str) -> None:
    status, kind, words, body = REFUSED[row]
    response = client.post("/v1/decide", json=body)
    error = response.get_json()["error"]
    assert (response.status_code, error["type"]) == (status, kind), error
    assert set(error) == {"type", "message"}
    assert all(word in error["message"] for word in words), error["message"]
    assert len(error["message"]) < 1_000


@pytest.mark.parametrize("row", ALLOWED)
def test_the_far_end_of_a_limit_is_allowed(client: FlaskClient, row: str) -> None:
    body = ALLOWED[row]
    response = client.post("/v1/decide", json=body)
    assert response.status_code == 200, response.get_json()
    assert set(response.get_json()["answers"]) == set(body["questions"])


def test_a_refused_request_stores_nothing(client: FlaskClient) -> None:
    before = _ids(client)
    for status, _kind, _words, body in REFUSED.values():
        assert client.post("/v1/decide", json=body).status_code == status
    assert _ids(client) == before


def _ids(client: FlaskClient) -> list[str]:
    services = client.application.extensions["svc"]
    return [decision.id for decision in services.decisions.page("default", 1_000).entries]
