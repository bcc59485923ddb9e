"""From marshmallow fields to JSON schema: one line for each of our own field classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from marshmallow import Schema
from marshmallow import fields as marshmallow_fields

from svc import limits
from svc.engine.plans import CHAIN, KINDS, PlanKind, named_kinds
from svc.openapi import words
from svc.openapi.answers import label_schema
from svc.openapi.shapes import FLAG, NOT_BLANK, TEXT, WORDS, Json, array, record, ref
from svc.questions import QuestionSchema
from svc.questions import fields as own
from svc.questions.conditions import OPERANDS, Rules, When
from svc.questions.number import Bound
from svc.questions.schema import Examples, Keys
from svc.schemas import decision, images
from svc.schemas.plan import PlanField

Field = marshmallow_fields.Field[Any]

_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]+$"
_PROJECT = (
    r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
)
_SIX = "[A-Za-z0-9+/]"  # a character of six bits; four of them are three bytes
_BASE64 = f"({_SIX}{{4}})*({_SIX}{{4}}|{_SIX}{{3}}=|{_SIX}{{2}}==)"
_SIMPLE = {"type": ["string", "number", "boolean", "null"]}
_LISTED = {"type": ["string", "number", "boolean", "null", "array"]}
_JSON_TYPES = {"text": "string", "a number": "number", "true or false": "boolean"}


def property_of(converter: object, field: Field, **_: Any) -> Json:
    """The JSON schema of a field, as an attribute function of apispec."""
    return {**_shape(field), **_default(field), "description": _words(field)}


def plan() -> Json:
    """The forms of `model`."""
    chain = KINDS[CHAIN]
    return {
        "description": (
            "A model id (`vendor/model`, or `@provider/model`), or several and how they work "
            "together."
        ),
        "anyOf": [
            {**WORDS, "description": "One model."},
            {**array(WORDS, *chain.members), "description": chain.meaning},
            *map(_plan, named_kinds()),
        ],
    }


def condition() -> Json:
    """What a rule may ask of a field."""
    operators = {name: {"type": _JSON_TYPES[kind]} for name, kind in OPERANDS.items()}
    return {
        "description": "A value to equal, a list of values to be one of, or an operator.",
        "anyOf": [
            _SIMPLE,
            {"type": "array"},
            record({}, operators, minProperties=1, maxProperties=1, additionalProperties=False),
        ],
    }


def _plan(kind: PlanKind) -> Json:
    models = {kind.name: array(WORDS, *kind.members)}
    options = {
        name: {**_number(option.field), "default": option.default}
        for name, option in kind.options.items()
    }
    return record(models, options, additionalProperties=False, description=kind.meaning)


def _shape(field: Field) -> Json:
    for kind in type(field).__mro__:
        if kind in _SHAPES:
            return _SHAPES[kind](field)
    raise TypeError(f"{type(field).__name__} has no JSON schema; give it one in {__name__}")


def _number(field: own.Number) -> Json:
    if field.exclusive:
        return {"type": "number", "exclusiveMinimum": field.low, "exclusiveMaximum": field.high}
    return {"type": "number", "minimum": field.low, "maximum": field.high}


def _options(field: own.Descriptions) -> Json:
    low, high = field.bounds
    return {
        "type": "object",
        "additionalProperties": TEXT,
        "propertyNames": {"pattern": NOT_BLANK},
        "minProperties": low,
        "maxProperties": high,
    }


def _questions(field: Field) -> Json:
    return {
        "type": "object",
        "additionalProperties": ref("Question"),
        "propertyNames": {"pattern": _NO_CONTROL},
        "minProperties": 1,
        "maxProperties": limits.QUESTIONS,
    }


def _rules(field: Field) -> Json:
    conditions = {"type": "object", "additionalProperties": ref("Condition")}
    rule = {"if": conditions, "answer": label_schema(_type(field))}
    return array(record(rule, additionalProperties=False), 0, limits.RULES)


def _examples(field: Field) -> Json:
    example = {"state": {}, "label": label_schema(_type(field))}
    return array(record(example, additionalProperties=False), 0, limits.EXAMPLES)


def _images(field: Field) -> Json:
    url = {"pattern": "^https://[!-~]+$", "maxLength": limits.IMAGE_URL_CHARS}
    data = {"pattern": f"^data:image/(png|jpeg|webp|gif);base64,{_BASE64}$"}
    return array({"type": "string", "anyOf": [url, data]}, 0, limits.IMAGES)


def _name(field: Field) -> Json:
    """Of a plain text field: the one name that a question's type may have, or any text."""
    return {"const": _type(field)} if field.name == "type" else TEXT


_SHAPES: dict[type, Callable[[Any], Json]] = {
    own.Flag: lambda field: FLAG,
    own.Number: _number,
    own.Whole: lambda field: {"type": "integer", "minimum": field.low, "maximum": field.high},
    own.Words: lambda field: WORDS,
    own.Descriptions: _options,
    own.Levels: lambda field: array(WORDS, *field.bounds),
    Bound: lambda field: {"type": "integer" if field.whole else "number"},
    Keys: lambda field: array(TEXT),
    Examples: _examples,
    When: lambda field: {"type": "object", "additionalProperties": _LISTED, "minProperties": 1},
    Rules: _rules,
    PlanField: lambda field: ref("ModelPlan"),
    decision.StateField: lambda field: {"maxLength": limits.STATE_CHARS},
    decision.QuestionsField: _questions,
    decision.ModeField: lambda field: {"type": "string", "enum": list(decision.MODES)},
    decision.OneOf: lambda field: {"type": "string", "enum": list(field.names)},
    decision.DebiasField: lambda field: {"enum": [True, False, "auto"]},
    decision.ProjectField: lambda field: {
        "type": "string",
        "pattern": _PROJECT,
        "maxLength": limits.PROJECT_CHARS,
    },
    images.Images: _images,
    marshmallow_fields.String: _name,
    marshmallow_fields.Raw: lambda field: {},
}


def _type(field: Field) -> str:
    assert isinstance(field.parent, QuestionSchema)
    return field.parent.model.type


def _default(field: Field) -> Json:
    """The default, where there is one that JSON has."""
    frozen = _frozen(field.parent)
    found = {} if frozen is None else {one.name: one.default for one in dataclasses.fields(frozen)}
    value = {**found, **words.DEFAULTS}.get(str(field.name))
    return {"default": value} if isinstance(value, (bool, int, float, str)) else {}


def _frozen(schema: Schema | Any) -> Any:
    """What a schema loads into, if that has defaults."""
    if isinstance(schema, QuestionSchema):
        return schema.model
    return decision.DecisionRequest if isinstance(schema, decision.DecisionSchema) else None


def _words(field: Field) -> str:
    name = str(field.name)
    if isinstance(field.parent, QuestionSchema):
        return words.OF_TYPE.get((_type(field), name)) or words.QUESTION[name]
    if isinstance(field.parent, decision.DecisionSchema):
        return words.REQUEST[name]
    return words.FEEDBACK[name]
