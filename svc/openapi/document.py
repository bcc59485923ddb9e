"""The document, put together by apispec."""

from __future__ import annotations

from collections.abc import Iterable

from svc import limits
from svc.openapi import error_responses
from svc.openapi.components import new
from svc.openapi.operation import Route
from svc.shapes import TEXT, Json

_REQUEST_ID: Json = {
    "description": f"Your own id, of 1 to {limits.REQUEST_ID_CHARS} visible ASCII characters.",
    "schema": TEXT,
}


def document(routes: Iterable[Route]) -> Json:
    """The whole interface in OpenAPI 3.1."""
    spec, converter = new()
    spec.components.schema("Error", error_responses.schema())
    for name, response in error_responses.responses().items():
        spec.components.response(name, response)
    for name, header in error_responses.HEADERS.items():
        spec.components.header(name, header)
    spec.components.parameter("x-request-id", "header", _REQUEST_ID)
    spec.components.security_scheme("apiKey", {"type": "http", "scheme": "bearer"})
    parameters = converter.schema2parameters
    for route in routes:
        operation = converter.resolved(route.operation())
        said = route.description
        places = {"path": said.path, "query": said.query, "header": said.header}
        given = [(schema, place) for place, schema in places.items() if schema is not None]
        fields = [one for schema, place in given for one in parameters(schema, location=place)]
        # The first parameter is the name of a component.
        operation["parameters"] = ["x-request-id", *fields]
        spec.path(route.path, operations={route.method: operation})
    whole: Json = spec.to_dict()
    return whole
