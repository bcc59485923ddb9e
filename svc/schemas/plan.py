"""The field `model`: which models answer, and how they work together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError

from svc import limits
from svc.engine.plans import CHAIN, KINDS, Plan, PlanKind, named_kinds
from svc.phrases import listed
from svc.questions import Described, amount
from svc.shapes import WORDS, Json, Named, array, described, record


def _form(kind: PlanKind) -> Json:
    models = {kind.name: array(WORDS, *kind.members)}
    options = {
        name: {**option.field.form, "default": option.default}
        for name, option in kind.options.items()
    }
    return record(models, options, additionalProperties=False, description=kind.meaning)


def model_plan() -> Named:
    """The forms of the field, for all kinds that are registered when the document is made."""
    forms = {
        "description": (
            "A model id (`vendor/model`, or `@provider/model`), or several and how they work "
            f"together. An id has at most {limits.MODEL_ID_BYTES} bytes in UTF-8, and all of them "
            f"{limits.MODEL_IDS_BYTES:,}."
        ),
        "anyOf": [
            described(WORDS, "One model."),
            described(array(WORDS, *KINDS[CHAIN].members), KINDS[CHAIN].meaning),
            *map(_form, named_kinds()),
        ],
    }
    return Named("ModelPlan", forms)


class PlanField(Described[Plan]):
    """A model id, a list of ids (a fallback chain), or an object that names a kind of plan."""

    form = {"$ref": model_plan}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Plan:
        if isinstance(value, str):
            return Plan(CHAIN, _models([value], KINDS[CHAIN]))
        if isinstance(value, list):
            return Plan(CHAIN, _models(value, KINDS[CHAIN]))
        if not isinstance(value, Mapping):
            raise ValidationError(_forms())
        named = [kind for kind in named_kinds() if kind.name in value]
        if len(named) != 1:
            raise ValidationError(_forms())
        return _plan(named[0], value)


def _plan(kind: PlanKind, value: Mapping[str, Any]) -> Plan:
    unknown = value.keys() - {kind.name} - kind.options.keys()
    if unknown:
        raise ValidationError(f"a {kind.name} has no field {listed(sorted(unknown))}")
    try:
        models = _models(value[kind.name], kind)
    except ValidationError as error:
        raise ValidationError({kind.name: error.messages}) from None
    options = {}
    for name, option in kind.options.items():
        try:
            options[name] = option.field.deserialize(value.get(name, option.default))
        except ValidationError as error:
            raise ValidationError({name: error.messages}) from None
    return Plan(kind.name, models, options)


def _models(value: Any, kind: PlanKind) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValidationError("must be a list of model ids")
    amount(len(value), kind.members, "models")
    if not all(isinstance(model, str) and model.strip() for model in value):
        raise ValidationError("every model must be an id that is not blank")
    return tuple(value)


def _forms() -> str:
    *most, last = [f'"{kind.name}"' for kind in named_kinds()]
    return f"must be a model id, a list of ids, or an object with {', '.join(most)} or {last}"
