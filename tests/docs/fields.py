"""docs/fields.md, made of the OpenAPI document: `python -m tests.docs.fields` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.docs.pages import ROOT
from tests.openapi.judge import document, success

PAGE = ROOT / "docs/fields.md"
METHODS = ("get", "post", "put", "patch", "delete")
_TOP = """# Every field

For whoever writes a program against the HTTP interface: each route with its parameters, then each
object with its fields. A decision is a [DecisionRequest](#decisionrequest), which holds questions
such as a [ChoiceQuestion](#choicequestion), and is answered by a
[DecisionResponse](#decisionresponse) with answers such as a [ChoiceAnswer](#choiceanswer).

*Required* stands where a request must have a field, or where an answer always has it. Worked
examples are in [requests.md](requests.md) and [curl.md](curl.md), errors in [errors.md](errors.md).
The page is made of the server's own description of itself (`GET /openapi.json`) by
`python -m tests.docs.fields`, and a test holds the two together.
"""
# What tells a schema further than its type, in words.
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "over {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "under {}"),
    ("minLength", "{} or more characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "{} or more"),
    ("maxItems", "at most {}"),
    ("minProperties", "{} or more"),
    ("maxProperties", "at most {}"),
)


def page() -> str:
    """The whole page."""
    described = document()
    parts = [_TOP, "## Routes\n", *_routes(described), "## Objects\n"]
    return "\n".join([*parts, *_objects(described["components"]["schemas"])])


def _routes(described: Any) -> Iterator[str]:
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if method in METHODS:
                yield f"### {method.upper()} {path}\n"
                yield _words(operation["summary"]) + _sent_and_answered(operation) + "\n"
                yield from _parameters(operation)


def _sent_and_answered(operation: Any) -> str:
    """What a route takes and gives, as links."""
    body = _shown(operation.get("requestBody", {}))
    answer = _shown(success(operation))
    return (f" Takes {body}." if body else "") + (f" Answers with {answer}." if answer else "")


def _shown(described: Any) -> str:
    kinds = (kind.get("schema", {}) for kind in described.get("content", {}).values())
    shown = dict.fromkeys(_type(schema) for schema in kinds if "$ref" in schema)
    return " or ".join(shown)


def _parameters(operation: Any) -> Iterator[str]:
    own = [one for one in operation.get("parameters", ()) if "$ref" not in one]
    if own:
        yield "| parameter | type | meaning |\n|---|---|---|"
        for one in own:
            required = "*Required.* " if one.get("required") else ""
            meaning = (required + _meaning(one.get("description", ""), one["schema"])).strip()
            yield f"| `{one['name']}` | {_type(one['schema'])} | {meaning} |"
        yield ""


def _objects(schemas: Any) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f"### {name}\n"
        yield from _object(schema)
        yield ""


def _object(schema: Any) -> Iterator[str]:
    if words := schema.get("description"):
        yield _words(words) + "\n"
    if not schema.get("properties"):
        yield f"{_type({**schema, 'description': ''}).capitalize()}{_bounds(schema)}."
        return
    yield "| field | type | meaning |\n|---|---|---|"
    yield from _rows(schema)


def _rows(schema: Any, within: str = "") -> Iterator[str]:
    """A row for each field, and below it those of the object without a name that it holds."""
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        mark = "*Required.* " if name in required else ""
        meaning = (mark + _meaning(field.get("description", ""), field)).strip()
        yield f"| `{within}{name}` | {_type(field)} | {meaning} |"
        for key, sign in (("items", "[]."), ("additionalProperties", ".*.")):
            held = field.get(key)
            if isinstance(held, dict) and "properties" in held:
                yield from _rows(held, f"{within}{name}{sign}")
        if "properties" in field:
            yield from _rows(field, f"{within}{name}.")


def _meaning(words: str, schema: Any) -> str:
    default = schema.get("default")
    told = "" if default is None else f" Default: `{json.dumps(default)}`."
    bounds = _bounds(schema).removeprefix(", ")
    allowed = f" ({bounds})" if bounds else ""
    return (_words(words) + told + allowed).strip()


def _bounds(schema: Any) -> str:
    told = [words.format(f"{schema[name]:,}") for name, words in _BOUNDS if name in schema]
    return "".join(f", {one}" for one in told)


def _type(schema: Any) -> str:
    """The type of a value in words, with links to objects."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    for kind in ("oneOf", "anyOf"):
        if kind in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[kind]))
    return _plain(schema)


def _plain(schema: Any) -> str:
    kind = schema.get("type", "any JSON")
    if isinstance(kind, list):
        return " or ".join(kind)
    inner = schema.get("items") or schema.get("additionalProperties")
    if kind in ("array", "object") and isinstance(inner, dict) and inner:
        return f"{'list' if kind == 'array' else 'map'} of {_type(inner)}"
    return {"array": "list"}.get(kind, str(kind))


def _words(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
