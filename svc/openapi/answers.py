"""What each question type answers, and what a true answer to it is; one entry a type."""

from __future__ import annotations

from svc.openapi.shapes import (
    COUNT,
    FLAG,
    PROBABILITY,
    TEXT,
    WORDS,
    Json,
    array,
    described,
    mapping,
    nullable,
    record,
    ref,
)
from svc.pins import PINS
from svc.questions import TYPES
from svc.questions.extraction import ExtractionSchema

DECISION_ID: Json = {"type": "string", "pattern": "^dec_[0-9A-HJKMNP-TV-Z]{26}$"}
MODES: Json = {"type": "string", "enum": ["logprobs", "verbal"]}
CONFIG: Json = {"type": "string", "enum": list(PINS)}
CONFIDENCE = described(PROBABILITY, "The probability of the answer.")

LABELS: Json = {
    "choice": described(TEXT, "An option key."),
    "score": described(COUNT, "A level index, 0 for the lowest."),
    "noul": FLAG,
    "multi": described(array(TEXT), "The option keys that apply."),
    "text": described(WORDS, "The value."),
    "number": {"type": "number", "description": "The value."},
    "integer": {"type": "integer", "description": "The value."},
}

_ABSTAIN = {
    "abstain": described(FLAG, "Whether `confidence` is below the question's `min_confidence`.")
}
_RULED = {
    "confidence": {"const": 1, "description": "Only where a rule answered."},
}
_COVERAGE = {
    "coverage": described(PROBABILITY, "As asked for."),
    "guaranteed": described(FLAG, "Whether there are labels enough for `set`."),
}
_SET = {
    **_COVERAGE,
    "set": described(
        array(TEXT, 1),
        "Holds the true answer with probability `coverage`, if labels are drawn like decisions.",
    ),
}
# What any answer may have, whatever its type.
_ADDED = {
    "agreement": described(PROBABILITY, "The share of a council that had this answer."),
    "answered_by": described(TEXT, "The model of a cascade that answered."),
    "explain": described(
        mapping({"type": "number"}), "By how much the probability drops without each field."
    ),
    "stage": described(COUNT, "Which stage the question was in, where there are several."),
    "rule": described(COUNT, "The index of the rule that answered, without a model."),
}

_OF_OPTIONS = described(mapping(PROBABILITY), "By option key.")
_VALUE = {"confidence": described(PROBABILITY, "The probability that the value is right.")}
_NO_VALUE = "Null when the state has none, or the reply had no valid one."

# By type: the fields that an answer always has, and those that it may have.
FIELDS: dict[str, tuple[Json, Json]] = {
    "choice": (
        {
            "choice": described(TEXT, "An option key, or `none_of_these`."),
            "probabilities": _OF_OPTIONS,
            "confidence": CONFIDENCE,
        },
        {**_ABSTAIN, **_SET},
    ),
    "score": (
        {
            "score": {
                "type": "number",
                "minimum": 0,
                "description": "The expected level, 0 for the lowest.",
            },
            "probabilities": described(array(PROBABILITY, 2), "One per level, lowest first."),
            "confidence": CONFIDENCE,
        },
        _ABSTAIN,
    ),
    "noul": ({"noul": described(PROBABILITY, "The probability of yes.")}, {**_RULED, **_SET}),
    "multi": (
        {
            "selected": described(array(TEXT), "The option keys that apply."),
            "probabilities": described(mapping(PROBABILITY), "By option key, each on its own."),
        },
        {**_RULED, **_COVERAGE},
    ),
    "text": ({"value": described(nullable(TEXT), _NO_VALUE), **_VALUE}, _ABSTAIN),
    "number": (
        {"value": {"type": ["number", "null"], "description": _NO_VALUE}, **_VALUE},
        _ABSTAIN,
    ),
    "integer": (
        {"value": {"type": ["integer", "null"], "description": _NO_VALUE}, **_VALUE},
        _ABSTAIN,
    ),
}


def label_schema(kind: str) -> Json:
    """A true answer to a question of this type; null may be one where the type is nullable."""
    label: Json = LABELS[kind]
    return nullable(label) if isinstance(TYPES[kind], ExtractionSchema) else label


def name(kind: str, part: str) -> str:
    """The component's name: `ChoiceQuestion`, `ScoreAnswer`."""
    return kind.capitalize() + part


def schemas() -> Json:
    """The components of a decision's response."""
    of_types = {name(kind, "Answer"): _answer(kind) for kind in TYPES}
    skipped = record(
        {"skipped": {"const": True}},
        {"stage": _ADDED["stage"]},
        description="Not asked: `when` did not match, or an answer that it needs was skipped.",
    )
    any_answer = {"anyOf": [ref(one) for one in (*of_types, "SkippedAnswer")]}
    answers = described(mapping(ref("Answer")), "By question key, in the order of the request.")
    return {
        **of_types,
        "SkippedAnswer": skipped,
        "Answer": described(any_answer, "The answer to a question, by the question's type."),
        "DecisionResponse": record({**decision_fields(), "answers": answers}),
    }


def decision_fields() -> Json:
    """What a decision's response has besides its answers."""
    cost = {"type": "number", "minimum": 0}
    return {
        "id": described(DECISION_ID, "Unique, and sortable by time."),
        "model": described(TEXT, "The full ids of the models that answered, joined by commas."),
        "mode": described(MODES, "The mode that answered; `verbal` when any question was."),
        "latency_ms": described(cost, "Milliseconds over all model calls; 0 when cached."),
        "cost_usd": described(cost, "What the models cost, in dollars; 0 when cached."),
        "cached": described(FLAG, "Whether every call was served from the cache."),
        "debiased": described(FLAG, "Whether options were asked in both orders and averaged."),
        "project": described(TEXT, "The calibration namespace used."),
        "config": described(CONFIG, "The pinned config used."),
    }


def _answer(kind: str) -> Json:
    always, optional = FIELDS[kind]
    calibrated = described(
        FLAG, "Whether the project's feedback has fitted a calibrator for this exact question."
    )
    return record({**always, "calibrated": calibrated}, {**optional, **_ADDED})
