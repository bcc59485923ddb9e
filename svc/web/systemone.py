"""`POST /v1/systemone`: the criteria request shape, put into the words of `/v1/decide` and back.

Only this file knows the shape: the core sees an ordinary request, and `_Shape` presents its
answers the way the clients of this route read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, g

from svc import jsontext
from svc.engine.decide import Engine
from svc.errors import InvalidJson, InvalidRequest
from svc.phrases import quoted
from svc.pins import LATEST
from svc.questions import TYPES
from svc.records import Answer, Source
from svc.schemas import load_decision
from svc.schemas.decision import DecisionSchema
from svc.web.body import json_response, read_json

TEXT = "string"  # this route's name of a text question
SKIPPED = "skipped"  # the type of a skipped answer; clients pass over types unknown to them
_PIN = re.compile(r"svc-\d+\.\d+\.\d+")
_DECISION_FIELDS = frozenset(DecisionSchema().fields)
# What is asked where a question has no instructions.
_DEFAULT_INSTRUCTIONS = {
    "choice": "Which of these fits the input best?",
    "score": "Which of these levels fits the input best?",
    "noul": "Does this hold for the input?",
    "multi": "Which of these apply to the input?",
}
_DEFAULT_INSTRUCTION = "Which value does the input give?"


def blueprint(engine: Engine) -> Blueprint:
    """The alias of `/v1/decide` that takes the criteria shape."""
    routes = Blueprint("systemone", __name__)

    @routes.post("/v1/systemone")
    def systemone() -> Response:
        """Answer typed questions given in the criteria shape."""
        shape = _Shape(read_json())
        asked = load_decision(shape.body)
        asked = replace(asked, project=g.access.project(asked.project))
        g.decision = engine.decide(asked, g.deadline, g.access.key_id, shape.present)
        usage = {"input_tokens": g.decision.input_tokens, "output_tokens": 0}
        return json_response({**g.decision.response(), "usage": usage})

    return routes


class _Shape:
    """One request in the criteria shape: `body` is its `/v1/decide` form."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, Mapping):
            raise InvalidJson("the body must be a JSON object")
        questions = body.get("questions")
        self._questions: Mapping[str, Any] = questions if isinstance(questions, Mapping) else {}
        self.body = {field: value for field, value in body.items() if field in _DECISION_FIELDS}
        self.body.pop("model", None)
        self.body = {**_model(body.get("model")), **self.body}
        if self._questions:
            self.body["questions"] = {
                key: _translated(key, question) for key, question in self._questions.items()
            }

    def present(self, key: str, answer: Answer) -> Answer:
        """An answer as this route's clients read it."""
        if answer.source is Source.SKIPPED:
            return replace(answer, fields={"type": SKIPPED, **answer.fields})
        asked = self._questions[key]
        fields = {"type": asked["type"], **answer.fields}
        if asked["type"] == "score":
            criteria = asked.get("criteria")
            levels = asked.get("levels") if criteria is None else criteria
            fields["probabilities"] = _by_level(fields["probabilities"])
            fields["legend"] = _by_level(levels)
        return replace(answer, fields=fields)


def _by_level(values: list[Any]) -> dict[str, Any]:
    return {str(level): value for level, value in enumerate(values)}


def _model(model: Any) -> dict[str, Any]:
    """The fields that this route's `model` stands for."""
    if not isinstance(model, str):
        return {} if model is None else {"model": model}
    if model == LATEST or _PIN.fullmatch(model):
        return {"config": model}
    return {"model": model} if "/" in model or model.startswith("@") else {}


def _translated(key: str, question: Any) -> Any:
    """A question in the words of `/v1/decide`; what is no question is left for its checks."""
    if not isinstance(question, Mapping) or not isinstance(question.get("type"), str):
        return question
    try:
        return _question(key, question, question["type"])
    except RecursionError:
        raise InvalidRequest(f"question {quoted(key)}: it is nested too deeply") from None


def _question(key: str, question: Mapping[str, Any], kind: str) -> Any:
    if kind == TEXT:
        if "enum" in question:
            raise InvalidRequest(
                f"question {quoted(key)}: a string with enum is not possible; "
                "ask a choice with the values as criteria"
            )
        kind = "text"
    if kind not in TYPES:
        allowed = ", ".join((*TYPES, TEXT))
        raise InvalidJson(
            f"question {quoted(key)}: unknown type {quoted(kind)}; allowed: {allowed}"
        )
    known = {name: value for name, value in question.items() if name in TYPES[kind].fields}
    criteria = question.get("criteria")
    instructions = _text(question.get("instructions"))
    if not instructions.strip():
        instructions = _DEFAULT_INSTRUCTIONS.get(kind, _DEFAULT_INSTRUCTION)
    translate = _CRITERIA.get(kind)
    try:
        fields = translate(known, criteria) if translate else {}
    except ValueError as error:
        raise InvalidRequest(f"question {quoted(key)} criteria: {error}") from None
    meaning = fields.pop("meaning", "")
    return {**known, **fields, "type": kind, "instructions": instructions + meaning}


def _choice(known: Mapping[str, Any], criteria: Any) -> dict[str, Any]:
    return {"escape": known.get("escape", False), **_options(known, criteria)}


def _options(known: Mapping[str, Any], criteria: Any) -> dict[str, Any]:
    if criteria is None:
        return {}
    if not isinstance(criteria, Mapping):
        raise ValueError("must be an object of option key to description")
    return {"options": {name: _text(described) for name, described in criteria.items()}}


def _score(known: Mapping[str, Any], criteria: Any) -> dict[str, Any]:
    if criteria is None:
        return {}
    if not isinstance(criteria, list):
        raise ValueError("must be a list of level descriptions, lowest first")
    return {"levels": [_text(level) for level in criteria]}


def _noul(known: Mapping[str, Any], criteria: Any) -> dict[str, Any]:
    """What yes and no mean goes into the instructions: a noul has no options."""
    if criteria is None:
        return {}
    if not isinstance(criteria, Mapping):
        raise ValueError("must be an object with true, false or both")
    sides = (("Yes", criteria.get("true")), ("No", criteria.get("false")))
    lines = [f"\n{name} means: {_text(side)}" for name, side in sides if _text(side).strip()]
    return {"meaning": "".join(lines)}


_CRITERIA: dict[str, Callable[[Mapping[str, Any], Any], dict[str, Any]]] = {
    "choice": _choice,
    "multi": _options,
    "score": _score,
    "noul": _noul,
}


def _text(content: Any) -> str:
    """Text as it is, nothing for null, JSON for anything else."""
    return "" if content is None else jsontext.as_text(content)
