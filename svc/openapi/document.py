"""The document, put together by apispec from the parts beside this file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from svc import __version__, limits
from svc.openapi import answers, criteria, errors, fields, reports, routes
from svc.openapi.shapes import TEXT, Json, ref
from svc.questions import TYPES
from svc.schemas.decision import DecisionSchema
from svc.schemas.feedback import FeedbackSchema

_SCHEMAS = "#/components/schemas/"
_ABOUT = (
    "Typed questions about a piece of input, answered by language models with probabilities.\n\n"
    "Once the server has an API key, every route needs `Authorization: Bearer svc_…`, but those "
    "marked as open; without keys it answers only the machine that it runs on. Every error has "
    "the shape `Error`, and every response an `x-request-id`."
)
_CLOSED: Json = {"additionalProperties": False}  # other fields are refused


def document() -> Json:
    """The whole interface in OpenAPI 3.1."""
    spec = _schemas()
    for name, response in errors.responses().items():
        spec.components.response(name, response)
    for name, header in _headers().items():
        spec.components.header(name, header)
    spec.components.parameter("x-request-id", "header", _request_id())
    spec.components.security_scheme("apiKey", {"type": "http", "scheme": "bearer"})
    for path, operations in routes.paths().items():
        spec.path(path, operations=operations)
    whole: Json = spec.to_dict()
    return whole


def decision_request() -> Json:
    """The body of `POST /v1/decide` as a JSON schema that stands alone."""
    return _alone("DecisionRequest")


def decision_response() -> Json:
    """The answer of `POST /v1/decide` as a JSON schema that stands alone."""
    return _alone("DecisionResponse")


def _schemas() -> APISpec:
    """A document with all schemas, and nothing yet that uses them."""
    plugin = MarshmallowPlugin()
    spec = APISpec(
        title="svc",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={"description": _ABOUT, "license": {"name": "MIT", "identifier": "MIT"}},
        servers=[{"url": "/", "description": "This server."}],
        security=[{"apiKey": []}, {}],
    )
    assert plugin.converter is not None  # it has one from here on
    plugin.converter.add_attribute_function(fields.property_of)  # type: ignore[no-untyped-call]
    _add_requests(spec)
    made = spec.components.schemas
    of_types = {kind: made[answers.name(kind, "Question")] for kind in TYPES}
    rest = criteria.requests(of_types, made["DecisionRequest"])
    rest |= answers.schemas() | reports.schemas() | errors.schemas()
    rest |= criteria.responses({kind: rest[answers.name(kind, "Answer")] for kind in TYPES})
    for name, schema in rest.items():
        spec.components.schema(name, schema)
    return spec


def _add_requests(spec: APISpec) -> None:
    """What marshmallow checks."""
    names = {kind: answers.name(kind, "Question") for kind in TYPES}
    for kind, name in names.items():
        spec.components.schema(name, _CLOSED, schema=TYPES[kind])
    mapping = {kind: _SCHEMAS + name for kind, name in names.items()}
    question = {
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    spec.components.schema("Question", question)
    spec.components.schema("Condition", fields.condition())
    spec.components.schema("ModelPlan", fields.plan())
    spec.components.schema("DecisionRequest", _CLOSED, schema=DecisionSchema())
    spec.components.schema("FeedbackRequest", _CLOSED, schema=FeedbackSchema())


def _headers() -> Json:
    return {
        "x-request-id": {
            "description": "The caller's, or one made here; it stands in the server's log.",
            "schema": TEXT,
            "required": True,
        },
        "Retry-After": {
            "description": "Seconds until it is worth trying again.",
            "schema": {"type": "integer", "minimum": 1},
            "required": True,
        },
        "WWW-Authenticate": {
            "description": "`Bearer`.",
            "schema": TEXT,
            "required": True,
        },
        "Content-Security-Policy": {
            "description": "Blocks every other origin.",
            "schema": TEXT,
            "required": True,
        },
    }


def _request_id() -> Json:
    return {
        "description": (
            f"An id of your own, of 1 to {limits.REQUEST_ID_CHARS} visible ASCII characters; of "
            "any other form it is replaced."
        ),
        "schema": TEXT,
    }


def _alone(name: str) -> Json:
    """A component with all that it refers to under `$defs`, and without OpenAPI's own keywords."""
    components: Json = _schemas().components.schemas
    needed, open_names = {}, [name]
    while open_names:
        current = open_names.pop()
        if current not in needed:
            needed[current] = components[current]
            open_names += _references(components[current])
    whole = {**needed.pop(name), "$defs": needed}
    plain: Json = json.loads(json.dumps(whole).replace(_SCHEMAS, "#/$defs/"))
    for schema in plain["$defs"].values():
        schema.pop("discriminator", None)
    return plain


def _references(value: Any) -> Iterator[str]:
    """The names of the components that a schema refers to."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].removeprefix(_SCHEMAS)
        inner = list(value.values())
    else:
        inner = value if isinstance(value, list) else []
    for one in inner:
        yield from _references(one)
