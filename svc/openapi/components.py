"""The components of the document: the descriptions of schemas and fields, by their names."""

from __future__ import annotations

import inspect
import json
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema
from marshmallow.fields import Field

from svc import __version__
from svc.questions import Described, QuestionSchema
from svc.schemas import DecisionRequestSchema, DecisionResponseSchema
from svc.shapes import Json, Named, ref

_SCHEMAS = ref("")["$ref"]
_ABOUT = (
    "Typed questions about a piece of input, answered by language models with probabilities.\n\n"
    "Once the server has an API key, every route needs `Authorization: Bearer svc_…`, except those "
    "marked as open; without keys it answers only the machine that it runs on. Every error has "
    "the shape `Error`, and every response an `x-request-id`."
)


class Converter(OpenAPIConverter):
    """Apispec's way from marshmallow to JSON schema, which takes those of our fields from them."""

    def field2property(self, field: Field[Any]) -> Json:
        """The JSON schema of a field."""
        if isinstance(field, Described):
            own: Json = self.resolved(field.json_schema())
            return own
        plain: Json = super().field2property(field)
        return plain

    def schema2jsonschema(self, schema: Schema) -> Json:
        """The JSON schema of a schema, described by its docstring."""
        made = self._made(schema)
        closed = {"additionalProperties": False} if schema.unknown == RAISE else {}
        about = inspect.cleandoc(schema.__doc__ or "").replace("\n", " ")
        return {**made, **closed, **({"description": about} if about else {})}

    def _made(self, schema: Schema) -> Json:
        if one_of := getattr(schema, "one_of", ()):
            return {"oneOf": [self.resolved(one) for one in one_of]}
        made: Json = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        return made

    def resolved(self, value: Any) -> Any:
        """A JSON schema with a reference wherever a component stands in it."""
        if isinstance(value, (Schema, type)):
            return self.resolve_nested_schema(value)  # type: ignore[no-untyped-call]
        if isinstance(value, Named):
            self._keep(value)
            return ref(value.name)
        if callable(value):
            return self.resolved(value())
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if not isinstance(value, dict):
            return value
        if not isinstance(value.get("$ref", ""), str):
            value = {**value, **self.resolved(value["$ref"])}
        return {name: self.resolved(one) for name, one in value.items()}

    def _keep(self, named: Named) -> None:
        """Make it a component, which exists before it is resolved: it may contain itself."""
        if named.name not in self.spec.components.schemas:
            self.spec.components.schemas[named.name] = {}
            self.spec.components.schemas[named.name] = self.resolved(named.schema)


class _Plugin(MarshmallowPlugin):
    Converter = Converter


def new() -> tuple[APISpec, Converter]:
    """An empty document, and the converter that adds components to it."""
    plugin = _Plugin(schema_name_resolver=_name)
    spec = APISpec(
        title="svc",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={"description": _ABOUT, "license": {"name": "MIT", "identifier": "MIT"}},
        servers=[{"url": "/", "description": "This server."}],
        security=[{"apiKey": []}, {}],
    )
    assert isinstance(plugin.converter, Converter)
    return spec, plugin.converter


def decision_request() -> Json:
    """The body of `POST /v1/decide` as a JSON schema that stands alone."""
    return _alone(DecisionRequestSchema)


def decision_response() -> Json:
    """The answer of `POST /v1/decide` as a JSON schema that stands alone."""
    return _alone(DecisionResponseSchema)


def _name(schema: Any) -> str:
    """A component's name: a question has its own, other schemas have that of the class."""
    if isinstance(schema, QuestionSchema):
        return schema.component
    kind = schema if isinstance(schema, type) else type(schema)
    return kind.__name__.removesuffix("Schema")


def _alone(schema: type[Schema]) -> Json:
    """A schema with all that it refers to under `$defs`, without OpenAPI's own keywords."""
    spec, converter = new()
    converter.resolved(schema)
    needed = dict(spec.components.schemas)
    whole = {**needed.pop(_name(schema)), "$defs": needed}
    plain: Json = json.loads(json.dumps(whole).replace(_SCHEMAS, "#/$defs/"))
    for component in plain["$defs"].values():
        component.pop("discriminator", None)
    return plain
