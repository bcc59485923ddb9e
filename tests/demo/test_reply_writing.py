"""Replies in JSON: they keep the schema whatever it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.demo.reply_writing import conform
from tests.demo.prompts import ESCAPE, TEAM, ask, prompt, question, reply_members

TICKET = "I was charged twice and I want a refund of 20 dollars for the second payment."
MEMBERS = (
    question(1, TEAM[0], *TEAM[1], ESCAPE),
    question(2, "Does the customer ask for a refund?"),
    question(3, "Which topics?", "refund", "parcel"),
    question(4, TEAM[0], *TEAM[1], ESCAPE),
    question(5, "How many dollars?"),
    reply_members(
        "an object with a probability from 0 to 1 for each of A, B, C; they sum to 1",
        "an object with a probability from 0 to 1 for each of yes, no; they sum to 1",
        "an object with, for each of A, B, the probability from 0 to 1 that the option applies",
        "a list of the 2 most likely labels, most likely first, each "
        '{"label": a label, "probability": a number from 0 to 1}',
        'an object {"value": a number, or null, "confidence": the probability from 0 to 1}',
    ),
)


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


NUMBER = {"type": "number"}
ENTRY = an_object(label={"type": "string"}, probability=NUMBER)
SCHEMA = an_object(
    reasoning={"type": "string"},
    q1=an_object(A=NUMBER, B=NUMBER, C=NUMBER),
    q2=an_object(yes=NUMBER, no=NUMBER),
    q3=an_object(A=NUMBER, B=NUMBER),
    q4={"type": "array", "items": ENTRY},
    q5=an_object(value={"type": ["number", "null"]}, confidence=NUMBER),
)


def reply(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        ask(prompt(TICKET, *MEMBERS), **fields)["message"]["content"]
    )
    return found


def check(answers: dict[str, Any]) -> None:
    assert max(answers["q1"], key=answers["q1"].get) == "A"
    assert sum(answers["q1"].values()) == pytest.approx(1, abs=0.001)
    assert answers["q2"]["yes"] > 0.5 > answers["q2"]["no"]
    assert answers["q3"]["A"] > 0.5 > answers["q3"]["B"]
    assert answers["q4"][0]["label"] == "A" and len(answers["q4"]) == 2
    assert answers["q5"]["value"] == 20


def test_every_type_is_answered_by_its_schema() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "answers", "schema": SCHEMA}}
    answers = reply(response_format=form)
    assert list(answers) == ["reasoning", "q1", "q2", "q3", "q4", "q5"]
    assert answers["reasoning"]
    check(answers)


def test_every_type_is_answered_by_the_words_of_the_prompt_alone() -> None:
    check(reply())
    check(reply(response_format={"type": "json_object"}))


@pytest.mark.parametrize(
    ("schema", "proposal", "kept"),
    [
        ({"type": "string"}, None, ""),
        ({"type": "string"}, 5, ""),
        ({"type": ["string", "null"]}, None, None),
        ({"type": ["null", "string"]}, "a", "a"),
        ({"type": "integer"}, 5.7, 5),
        ({"type": "number"}, "x", 0),
        ({"type": "boolean"}, None, False),
        ({"type": "null"}, 5, None),
        ({"enum": ["a", "b"]}, "b", "b"),
        ({"enum": ["a", "b"]}, "z", "a"),
        ({"const": 7}, "z", 7),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "a", "a"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 5], ["a", ""]),
        ({"type": "array", "items": {"type": "string"}}, "a", []),
        ({"type": "object", "properties": {"a": {"type": "number"}}}, {"b": 1}, {"a": 0}),
        ({"properties": {"a": {"type": "number"}}}, {"a": 2, "b": 1}, {"a": 2}),
        ({}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_proposal_is_made_to_keep_the_schema(schema: Any, proposal: Any, kept: Any) -> None:
    assert conform(schema, proposal) == kept
