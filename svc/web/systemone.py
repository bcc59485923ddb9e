"""`POST /v1/systemone`: the criteria request shape, put into the words of `/v1/decide` and back.

Only this file, and `systemone_errors.py` for errors, know the shape: the engine gets an ordinary
request, and `Criteria` presents its answers in the way that the clients of this route read them.
The fields of a question type decide which criteria it takes: these stand for its options or its
levels, or say what its two sides mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from flask import Blueprint, g
from marshmallow import EXCLUDE, post_load, pre_load

from svc import jsontext, limits
from svc.engine.decide import Engine
from svc.errors import InvalidRequest
from svc.jsontext import JsonObject
from svc.phrases import quoted
from svc.pins import LATEST
from svc.questions import TYPES, Descriptions, Levels, component
from svc.records import Answer, Decision, Source
from svc.schemas import (
    REFUSED,
    DecisionRequest,
    DecisionRequestSchema,
    DecisionResponseSchema,
    PlanField,
    QuestionsField,
    Shown,
    answer,
    model_plan,
)
from svc.shapes import (
    COUNT,
    OBJECT,
    PROBABILITY,
    TEXT,
    Json,
    Named,
    array,
    described,
    mapping,
    nullable,
    one_of_types,
    record,
)
from svc.web import error_handlers
from svc.web.decorators import Decorator, body, fails_as, response
from svc.web.systemone_errors import failures, for_both

# This route's other names of question types.
ALIASES = {"string": "text"}

# The type of a skipped answer. Clients ignore types that they do not know.
SKIPPED = "skipped"

_PIN = re.compile(r"svc-\d+\.\d+\.\d+")
_BOUNDS = ("minProperties", "maxProperties", "propertyNames", "minItems", "maxItems")
_ANY = described({}, "Text, or any JSON, which the model is shown as text. May be left out.")


@dataclass(frozen=True, slots=True)
class Criteria:
    """A checked request, and its questions as the caller sent them."""

    request: DecisionRequest
    questions: Mapping[str, Any]

    def present(self, key: str, answer: Answer) -> Answer:
        """An answer as this route's clients read it."""
        if answer.source is Source.SKIPPED:
            return answer.plus(type=SKIPPED)
        question = self.questions[key]
        kind = question["type"]
        field = _replaced(ALIASES.get(kind, kind))
        if not isinstance(field, Levels):
            return answer if kind in TYPES else answer.plus(type=kind)
        criteria = question.get("criteria")
        levels = question.get(field.name) if criteria is None else criteria
        probabilities = _by_level(answer.fields["probabilities"])
        return answer.plus(type=kind, probabilities=probabilities, legend=_by_level(levels))

    def response(self, decision: Decision) -> JsonObject:
        """The body of the response to the caller."""
        usage = {"input_tokens": decision.input_tokens, "output_tokens": 0}
        return {**decision.response(), "usage": usage}


class CriteriaModel(PlanField):
    """The models of a request, where `model` does not name a config."""

    form = {"anyOf": [nullable(TEXT), model_plan]}  # noqa: RUF012


def any_question() -> Named:
    """The JSON schema of a question of this route."""
    kinds = {**ALIASES, **{kind: kind for kind in TYPES}}
    names = {kind: _component(kind, "Question") for kind in kinds}
    questions = {name: Named(names[name], _question(name, kind)) for name, kind in kinds.items()}
    return Named("CriteriaQuestion", one_of_types(questions, names))


def any_answer() -> Named:
    """The JSON schema of an answer of this route."""
    answers = {kind: Named(_component(kind, "Answer"), typed_answer(kind)) for kind in TYPES}
    answers[SKIPPED] = skipped_answer()
    names = {kind: one.name for kind, one in answers.items()}
    aliases = {alias: names[kind] for alias, kind in ALIASES.items()}
    return Named("CriteriaAnswer", one_of_types(answers, {**names, **aliases}))


class CriteriaRequestSchema(DecisionRequestSchema):
    """Fields that are not known are ignored."""

    class Meta:
        unknown = EXCLUDE

    questions = QuestionsField(any_question)
    model = CriteriaModel(
        "`svc-x.y.z` or `svc-latest` selects that config; a name without a provider stands for the "
        "server's default model; anything else is as in `/v1/decide`.",
        attribute="plan",
    )

    @pre_load
    def _translate(self, given: Mapping[str, Any], **_: Any) -> JsonObject:
        rest = {name: value for name, value in given.items() if name != "model"}
        questions = given.get("questions")
        # Too many are refused for their number, and each would take time to translate.
        if isinstance(questions, Mapping) and 0 < len(questions) <= limits.MAPPED_QUESTIONS:
            rest["questions"] = {key: _translated(key, one) for key, one in questions.items()}
        return {**config_and_model(given.get("model")), **rest}

    @post_load(pass_original=True)
    def _freeze(self, data: JsonObject, given: Mapping[str, Any], **_: Any) -> Any:
        return Criteria(super()._freeze(data), given["questions"])


class CriteriaResponseSchema(DecisionResponseSchema):
    """The answers of a decision, each with its type, and what it used."""

    answers = Shown(mapping(any_answer), "By question key, each with its type.")
    usage = Shown(
        record(
            {
                "input_tokens": described(COUNT, "As the providers counted them; 0 when cached."),
                "output_tokens": {"const": 0, "description": "Not tracked."},
            }
        )
    )


def blueprint(engine: Engine, once: Decorator) -> Blueprint:
    """The alias of `/v1/decide` that takes the criteria shape."""
    routes = Blueprint("systemone", __name__)
    error_handlers.register(routes, for_both)

    @routes.post("/v1/systemone")
    @body(CriteriaRequestSchema)
    @once
    @response(CriteriaResponseSchema)
    @fails_as(failures())
    def systemone(criteria: Criteria) -> JsonObject:
        """Answer typed questions given in the criteria shape.

        An alias of `/v1/decide` for clients that speak of `criteria`.
        """
        project = g.access.project(criteria.request.project)
        decision_request = replace(criteria.request, project=project)
        g.decision = engine.decide(decision_request, g.deadline, g.access.key_id, criteria.present)
        g.asked = decision_request
        return criteria.response(g.decision)

    return routes


def _component(kind: str, part: str) -> str:
    return f"Criteria{component(kind, part)}"


@cache
def _replaced(kind: str) -> Descriptions | Levels | None:
    """The field that criteria stand for; a type without one may have sides."""
    fields = TYPES[kind].fields.values()
    return next((one for one in fields if isinstance(one, (Descriptions, Levels))), None)


def _question(name: str, kind: str) -> Json:
    """A question of `/v1/decide` whose instructions may be anything, or nothing, with criteria."""
    properties = TYPES[kind].json_schemas()
    properties |= {"type": {"const": name}, "instructions": _ANY}
    if "escape" in properties:
        properties["escape"] = {**properties["escape"], "default": False}
    if sides := TYPES[kind].model.sides:
        meant = " and what ".join(word.lower() for word in sides.values())
        properties["criteria"] = {
            "type": ["object", "null"],
            "properties": {side: {} for side in sides},
            "description": f"What {meant} mean: text, null or any JSON.",
        }
    refused = {"not": {"required": ["enum"]}} if name in ALIASES else {}
    either = _either(properties, _replaced(kind))
    return {**OBJECT, "properties": properties, "required": ["type"], **refused, **either}


def _either(properties: Json, replaced: Descriptions | Levels | None) -> Json:
    """A question has criteria, or else the field that they stand for; this describes both."""
    if replaced is None:
        return {}
    name, full = replaced.name, replaced.json_schema()
    about = full["description"]
    properties[name] = described({}, f"{about} Only looked at without criteria.")
    # Their number is that of the options or levels, but descriptions may be JSON.
    any_of_each = array({}) if isinstance(replaced, Levels) else mapping({})
    properties["criteria"] = {
        **nullable(any_of_each),
        **{bound: full[bound] for bound in _BOUNDS if bound in full},
        "description": f"{about} Descriptions may be text, null or any JSON.",
    }
    return {"if": record({"criteria": {"type": full["type"]}}), "else": record({name: full})}


def skipped_answer() -> Named:
    """The JSON schema of what stands in place of an answer."""
    skipped = {"type": {"const": SKIPPED}, "skipped": {"const": True}}
    others = {"stage": COUNT, "refused": REFUSED}
    return Named(_component(SKIPPED, "Answer"), record(skipped, others))


def typed_answer(kind: str) -> Json:
    """An answer of `/v1/decide` with its type, and with levels by name."""
    whole = answer(kind)
    aliases = [alias for alias, of in ALIASES.items() if of == kind]
    own: Json = {"type": {"enum": [kind, *aliases]} if aliases else {"const": kind}}
    if isinstance(_replaced(kind), Levels):
        own["probabilities"] = described(mapping(PROBABILITY), "By level: `0`, `1` and so on.")
        own["legend"] = described(mapping({}), "What each level means, as it was given.")
    required = dict.fromkeys(["type", *whole["required"], *own])
    return record({**whole["properties"], **own}, required=list(required))


def _by_level(values: list[Any]) -> JsonObject:
    return {str(level): value for level, value in enumerate(values)}


def config_and_model(model: Any) -> JsonObject:
    """The fields of `/v1/decide` that the `model` of a client stands for."""
    if not isinstance(model, str):
        return {} if model is None else {"model": model}
    if model == LATEST or _PIN.fullmatch(model):
        return {"config": model}
    return {"model": model} if "/" in model or model.startswith("@") else {}


def _translated(key: str, question: Any) -> Any:
    """A question in the words of `/v1/decide`; anything else is left to its checks."""
    if not isinstance(question, Mapping) or question.get("type") is None:
        return question
    try:
        return _in_words_of_decide(key, question, question["type"])
    except RecursionError:
        raise _refused(key, "it is nested too deeply") from None


def _refused(key: str, reason: str, field: str = "") -> InvalidRequest:
    """The error for one question, or for a field of it."""
    place = (key, field) if field else (key,)
    error = InvalidRequest(f"question {' '.join((quoted(key), *place[1:]))}: {reason}")
    error.places = [(("questions", *place), reason)]
    return error


def _in_words_of_decide(key: str, question: Mapping[str, Any], name: Any) -> Any:
    kind = ALIASES.get(name, name) if isinstance(name, str) else None
    if kind not in TYPES:
        told = f" {quoted(name)}" if isinstance(name, str) else ""
        allowed = ", ".join((*TYPES, *ALIASES))
        raise _refused(key, f"unknown type{told}; allowed: {allowed}", "type")
    if name in ALIASES and "enum" in question:
        reason = "a string with enum is not possible; ask a choice with the values as criteria"
        raise _refused(key, reason)
    schema = TYPES[kind]
    known = {name: value for name, value in question.items() if name in schema.fields}
    if "escape" in schema.fields:
        known.setdefault("escape", False)
    instructions = _text(question.get("instructions"))
    if not instructions.strip():
        instructions = schema.model.usual_instructions
    try:
        meant, meaning = _meant(kind, question.get("criteria"))
    except ValueError as error:
        raise _refused(key, str(error), "criteria") from None
    return {**known, **meant, "type": kind, "instructions": instructions + meaning}


def _meant(kind: str, criteria: Any) -> tuple[JsonObject, str]:
    """The field that criteria stand for, and what they add to the instructions."""
    replaced, sides = _replaced(kind), TYPES[kind].model.sides
    if criteria is None or not (replaced or sides):
        return {}, ""
    if replaced is None:
        return {}, _meaning(sides, criteria)
    if isinstance(replaced, Levels):
        if not isinstance(criteria, list):
            raise ValueError("must be a list of level descriptions, lowest first")
        if len(criteria) > replaced.bounds[1]:
            # They are refused for their number, and each would take time to write.
            return {replaced.name: criteria}, ""
        _check_legend(criteria)
        return {replaced.name: [_text(level) for level in criteria]}, ""
    if not isinstance(criteria, Mapping):
        raise ValueError("must be an object of option key to description")
    if len(criteria) > replaced.bounds[1]:
        return {replaced.name: criteria}, ""
    return {replaced.name: {name: _text(about) for name, about in criteria.items()}}, ""


def _check_legend(levels: list[Any]) -> None:
    """Raise `ValueError` for JSON that could not be read again with the answer."""
    if any(jsontext.nests_deeper(level, limits.NESTING) for level in levels):
        raise ValueError(f"a level is nested more than {limits.NESTING} levels deep")
    if jsontext.has_infinite(levels):
        raise ValueError("a level has a number that is too large")


def _meaning(sides: Mapping[str, str], criteria: Any) -> str:
    """What the sides mean, for the instructions, because such a question has no options."""
    if not isinstance(criteria, Mapping):
        raise ValueError(f"must be an object with {', '.join(sides)} or both")
    texts = {word: _text(criteria.get(side)) for side, word in sides.items()}
    lines = [f"\n{word} means: {text}" for word, text in texts.items() if text.strip()]
    return "".join(lines)


def _text(content: Any) -> str:
    """Text as it is, nothing for null, JSON for anything else."""
    return "" if content is None else jsontext.as_text(content)
