"""Which models answer, and how they work together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import ValidationError

from svc import limits
from svc.questions.fields import Described, Number, amount
from svc.shapes import WORDS, Json, Named, array, described, record

CHAIN, COUNCIL, CASCADE, RACE = "chain", "council", "cascade", "race"
ESCALATE_BELOW = 0.8  # default confidence under which a cascade asks its next model
_FORMS = 'must be a model id, a list of ids, or an object with "council", "cascade" or "race"'
_ANY_COUNT = (1, limits.MODEL_CALLS)


@dataclass(frozen=True, slots=True)
class Plan:
    """Models in the order given; a single model is a chain of one."""

    kind: str
    models: tuple[str, ...]
    escalate_below: float = ESCALATE_BELOW  # cascade only


def _form(kind: str, models: Json, about: str, **optional: Json) -> Json:
    return record({kind: models}, optional, additionalProperties=False, description=about)


_IDS = array(WORDS, *_ANY_COUNT)
_BELOW = {"type": "number", "minimum": 0, "maximum": 1, "default": ESCALATE_BELOW}
MODEL_PLAN = Named(
    "ModelPlan",
    {
        "description": (
            "A model id (`vendor/model`, or `@provider/model`), or several and how they work "
            "together."
        ),
        "anyOf": [
            described(WORDS, "One model."),
            described(_IDS, "A fallback chain: the next one is asked when one fails."),
            _form(
                COUNCIL,
                array(WORDS, *limits.COUNCIL),
                "All answer, and their answers are blended.",
            ),
            _form(
                CASCADE,
                _IDS,
                "Cheapest first; questions with a confidence below `escalate_below` go on.",
                escalate_below=_BELOW,
            ),
            _form(RACE, _IDS, "All are asked at once, and the first valid answer counts."),
        ],
    },
)


class PlanField(Described[Plan]):
    """A model id, a fallback chain, a council, a cascade or a race."""

    form = {"$ref": MODEL_PLAN}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Plan:
        if isinstance(value, str):
            return Plan(CHAIN, _models([value], _ANY_COUNT))
        if isinstance(value, list):
            return Plan(CHAIN, _models(value, _ANY_COUNT))
        if not isinstance(value, Mapping):
            raise ValidationError(_FORMS)
        return _named_plan(dict(value))


def _named_plan(value: dict[str, Any]) -> Plan:
    kinds = [kind for kind in (COUNCIL, CASCADE, RACE) if kind in value]
    if len(kinds) != 1:
        raise ValidationError(_FORMS)
    (kind,) = kinds
    models = _models(value.pop(kind), limits.COUNCIL if kind == COUNCIL else _ANY_COUNT)
    escalate_below = ESCALATE_BELOW
    if kind == CASCADE and "escalate_below" in value:
        try:
            escalate_below = Number(0, 1).deserialize(value.pop("escalate_below"))
        except ValidationError as error:
            raise ValidationError(f"escalate_below {error.messages[0]}") from None
    if value:
        raise ValidationError(f"a {kind} has no field {', '.join(sorted(value))}")
    return Plan(kind, models, escalate_below)


def _models(value: Any, bounds: tuple[int, int]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValidationError(_FORMS)
    amount(len(value), bounds, "models")
    if not all(isinstance(model, str) and model.strip() for model in value):
        raise ValidationError("every model must be an id that is not blank")
    return tuple(value)
