"""Every error status as a response, from the exceptions that make them; and headers."""

from __future__ import annotations

import inspect

from svc import errors
from svc.errors import ApiError, InternalError
from svc.shapes import COUNT, TEXT, Json, described, record, ref

_TEXT: Json = {"schema": TEXT, "required": True}
HEADERS: Json = {
    "x-request-id": {
        **_TEXT,
        "description": "The caller's own, or a new one; the server's log has it too.",
    },
    "Retry-After": {
        "description": "Seconds until it is worth trying again.",
        "schema": {"type": "integer", "minimum": 1},
        "required": True,
    },
    "WWW-Authenticate": {**_TEXT, "description": "`Bearer`."},
    "Idempotent-Replayed": {"description": "`true` where it was given before.", "schema": TEXT},
    "x-next-after": {"description": "`after` of the next page, if any.", "schema": COUNT},
    "x-next-before": {"description": "`before` of the next page, if any.", "schema": TEXT},
    "Content-Security-Policy": {**_TEXT, "description": "Blocks every other origin."},
}
_OF_STATUS = {429: ("Retry-After",), 401: ("WWW-Authenticate",)}


def schema() -> Json:
    """The one shape of errors."""
    types = {"type": "string", "enum": sorted({kind.type for kind in _kinds()})}
    inner = {"type": types, "message": described(TEXT, "What was wrong, where, what is allowed.")}
    return record({"error": record(inner)})


def responses() -> Json:
    """One response for each status, by its name as a component."""
    by_status: dict[int, list[type[ApiError]]] = {}
    for kind in _kinds():
        by_status.setdefault(kind.status, []).append(kind)
    return {f"Error{status}": _response(kinds) for status, kinds in by_status.items()}


def reference(kind: str, name: str) -> Json:
    """A reference to one of the components of a kind, such as `headers`."""
    return {"$ref": f"#/components/{kind}/{name}"}


def _kinds() -> list[type[ApiError]]:
    """The exceptions that have a type of their own, in the order of their statuses."""
    every = [one for one in vars(errors).values() if inspect.isclass(one)]
    errors_of_callers = [one for one in every if issubclass(one, ApiError) and one is not ApiError]
    kinds = [one for one in errors_of_callers if one is InternalError or "type" in vars(one)]
    return sorted(kinds, key=lambda kind: (kind.status, kind.type))


def _response(kinds: list[type[ApiError]]) -> Json:
    meanings = "\n".join(f"- `{kind.type}`: {inspect.getdoc(kind)}" for kind in kinds)
    types = {"enum": [kind.type for kind in kinds]}
    narrowed = {"properties": {"error": {"properties": {"type": types}}}}
    headers = ("x-request-id", *_OF_STATUS.get(kinds[0].status, ()))
    return {
        "description": meanings,
        "headers": {one: reference("headers", one) for one in headers},
        "content": {"application/json": {"schema": {**ref("Error"), **narrowed}}},
    }
