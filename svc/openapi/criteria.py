"""The criteria shape of `/v1/systemone`, made from the schemas of `/v1/decide`."""

from __future__ import annotations

from svc.openapi import words
from svc.openapi.answers import decision_fields, name
from svc.openapi.shapes import (
    COUNT,
    FLAG,
    OBJECT,
    PROBABILITY,
    Json,
    described,
    mapping,
    record,
    ref,
)
from svc.questions import TYPES

STRING = "string"  # the route's other name of a text question
_ANY = described({}, "Text, or any JSON, which the model is shown as text. May be left out.")
# What a type has here that it does not have on `/v1/decide`, in questions and in answers.
_ASKED: Json = {
    "choice": {"escape": {**FLAG, "default": False, "description": words.QUESTION["escape"]}},
    "noul": {
        "criteria": {
            "type": ["object", "null"],
            "properties": {"true": {}, "false": {}},
            "description": "What yes and what no mean: text, null or any JSON.",
        }
    },
}
_REFUSED: Json = {STRING: {"not": {"required": ["enum"]}}}
_ANSWERED: Json = {
    "score": {
        "probabilities": described(mapping(PROBABILITY), "By level: `0`, `1` and so on."),
        "legend": described(mapping({}), "What each level means, as it was given."),
    },
    "text": {"type": {"enum": ["text", STRING]}},
}
_REPLACED = {"choice": "options", "multi": "options", "score": "levels"}  # by `criteria`
_BOUNDS = ("minProperties", "maxProperties", "propertyNames", "minItems", "maxItems")


def requests(questions: Json, request: Json) -> Json:
    """The components of a request, from the question schemas by type and the decision request."""
    kinds = {STRING: "text", **{kind: kind for kind in TYPES}}
    made = {_name(kind, "Question"): _question(kind, questions[of]) for kind, of in kinds.items()}
    properties = {
        **request["properties"],
        "questions": {
            **request["properties"]["questions"],
            "additionalProperties": ref("CriteriaQuestion"),
        },
        "model": {
            "description": (
                "`svc-x.y.z` or `svc-latest` selects that config; a name without a provider "
                "stands for the server's default model; anything else is as in `/v1/decide`."
            ),
            "anyOf": [{"type": ["string", "null"]}, ref("ModelPlan")],
        },
    }
    return {
        **made,
        "CriteriaQuestion": _union({kind: _name(kind, "Question") for kind in kinds}),
        "CriteriaRequest": record(
            {},
            properties,
            required=request["required"],
            description="Fields that are not known are ignored.",
        ),
    }


def responses(answers: Json) -> Json:
    """The components of a response, from the answer schemas by type."""
    made = {_name(kind, "Answer"): _answer(kind, answers[kind]) for kind in TYPES}
    skipped = record({"type": {"const": "skipped"}, "skipped": {"const": True}}, {"stage": COUNT})
    usage = record(
        {
            "input_tokens": described(COUNT, "As the providers counted them; 0 when cached."),
            "output_tokens": {"const": 0, "description": "Not tracked."},
        }
    )
    kinds = {**{kind: _name(kind, "Answer") for kind in TYPES}, "skipped": "CriteriaSkippedAnswer"}
    response = {**decision_fields(), "answers": mapping(ref("CriteriaAnswer")), "usage": usage}
    return {
        **made,
        "CriteriaSkippedAnswer": skipped,
        "CriteriaAnswer": _union({**kinds, STRING: kinds["text"]}),
        "CriteriaResponse": record(response),
    }


def _name(kind: str, part: str) -> str:
    return "Criteria" + name(kind, part)


def _union(kinds: dict[str, str]) -> Json:
    names = dict.fromkeys(kinds.values())
    targets = {kind: ref(target)["$ref"] for kind, target in kinds.items()}
    return {
        "oneOf": [ref(target) for target in names],
        "discriminator": {"propertyName": "type", "mapping": targets},
    }


def _question(kind: str, question: Json) -> Json:
    """A question of `/v1/decide` whose instructions may be anything, or nothing, with criteria."""
    own = {"type": {"const": kind}, "instructions": _ANY, **_ASKED.get(kind, {})}
    properties = {**question["properties"], **own}
    replaced = _REPLACED.get(kind)
    either = {} if replaced is None else {"anyOf": _either(properties, replaced)}
    return {
        **OBJECT,
        "properties": properties,
        "required": ["type"],
        **_REFUSED.get(kind, {}),
        **either,
    }


def _either(properties: Json, replaced: str) -> list[Json]:
    """Either there are criteria, or what they replace counts; only then is that looked at."""
    full = properties[replaced]
    properties[replaced] = described({}, f"{full['description']} Only looked at without criteria.")
    properties["criteria"] = _criteria(full)
    return [
        record({"criteria": {"type": full["type"]}}),
        record({replaced: full}),
    ]


def _criteria(replaced: Json) -> Json:
    """What stands for options or levels: their number is theirs, but descriptions may be JSON."""
    return {
        "type": [replaced["type"], "null"],
        **{name: replaced[name] for name in _BOUNDS if name in replaced},
        "description": f"{replaced['description']} Descriptions may be text, null or any JSON.",
    }


def _answer(kind: str, answer: Json) -> Json:
    """An answer of `/v1/decide` with its type."""
    own = {"type": {"const": kind}, **_ANSWERED.get(kind, {})}
    required = dict.fromkeys(["type", *answer["required"], *own])
    return record({**answer["properties"], **own}, required=list(required))
