"""Small JSON schemas of which the others are made.

Wherever a schema may stand, and behind `$ref`, there may also be a marshmallow schema, a `Named`,
or a function that gives one of them later: `svc.openapi` makes a component of it and refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# A JSON schema, or a part of one.
Json = dict[str, Any]


@dataclass(frozen=True)
class Named:
    """A JSON schema that the OpenAPI document contains once, as the component `name`."""

    name: str
    schema: Json


NOT_BLANK = r"\S"
# Patterns for JSON schemas, which do not know \x: no control character, and neither that nor space.
NO_CONTROL = r"[^\u0000-\u001f\u007f-\u009f]"
VISIBLE = r"[^\s\u0000-\u001f\u007f-\u009f]"
TEXT: Json = {"type": "string"}
WORDS: Json = {"type": "string", "pattern": NOT_BLANK}
FLAG: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
NUMBER: Json = {"type": "number"}
AMOUNT: Json = {"type": "number", "minimum": 0}
PROBABILITY: Json = {"type": "number", "minimum": 0, "maximum": 1}
OBJECT: Json = {"type": "object"}
SHA256: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def ref(name: str) -> Json:
    """A reference to a schema among the document's components."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Json, words: str) -> Json:
    """A schema with a description."""
    return {**schema, "description": words}


def one_of(names: Iterable[str]) -> Json:
    """One of a few texts."""
    return {"type": "string", "enum": list(names)}


def array(items: Any, low: int = 0, high: int | None = None) -> Json:
    """A list of `low` to `high` items."""
    bounds = {"minItems": low or None, "maxItems": high}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": "array", "items": items, **given}


def mapping(values: Any) -> Json:
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


def nullable(schema: Any) -> Json:
    """The same schema, or null."""
    if not isinstance(schema, dict) or "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **words}


def one_of_types(options: dict[str, Any], names: dict[str, str]) -> Json:
    """One of several schemas, told apart by `type`; `names` are their components by type."""
    targets = {kind: ref(name)["$ref"] for kind, name in names.items()}
    return {
        "oneOf": list(options.values()),
        "discriminator": {"propertyName": "type", "mapping": targets},
    }
