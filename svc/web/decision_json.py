"""The JSON of a stored decision, as `POST /v1/decide` answered with it."""

from __future__ import annotations

from svc import jsontext
from svc.jsontext import JsonObject


def decision_json(fields: JsonObject, answers: str, tags: str | None) -> str:
    """The JSON of a decision from its fields, and from its answers and tags as JSON."""
    head = {"id": fields.pop("id")}
    if ref := fields.pop("ref"):
        head["ref"] = ref
    given = "" if tags is None else f',"tags":{tags}'
    rest = jsontext.dumps(fields)[1:-1]
    return f'{jsontext.dumps(head)[:-1]}{given},{rest},"answers":{answers}}}'
