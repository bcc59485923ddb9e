"""Small JSON schemas that the others are made of."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

NOT_BLANK = r"\S"
TEXT: Json = {"type": "string"}
WORDS: Json = {"type": "string", "pattern": NOT_BLANK}
FLAG: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
PROBABILITY: Json = {"type": "number", "minimum": 0, "maximum": 1}
OBJECT: Json = {"type": "object"}


def ref(name: str) -> Json:
    """A reference to a schema among the document's components."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Json, words: str) -> Json:
    """A schema with a description."""
    return {**schema, "description": words}


def array(items: Json, low: int = 0, high: int | None = None) -> Json:
    """A list of `low` to `high` items."""
    bounds = {"minItems": low or None, "maxItems": high}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": "array", "items": items, **given}


def mapping(values: Json) -> Json:
    """An object whose keys are the caller's."""
    return {"type": "object", "additionalProperties": values}


def record(properties: Json, optional: Json | None = None, **more: Any) -> Json:
    """An object that has all of `properties`, and may have those of `optional`."""
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        **more,
    }


def nullable(schema: Json) -> Json:
    """The same or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}
