"""Errors of `POST /v1/systemone`, in the shape of every route and in that of its other clients.

They read `detail`: of a request that cannot be carried out a list of places with messages, of any
other error an object.
"""

from __future__ import annotations

from svc.errors import ApiError, InvalidJson, InvalidRequest, UnknownMode
from svc.http import error_body
from svc.jsontext import JsonObject
from svc.shapes import TEXT, Json, array, described, record
from svc.web.error_handlers import Shaped

# The client's word for the kind of an error, where it has one.
_TYPES = {401: "authentication_error"}

# The characters of a name in a place; keys of questions are the caller's.
_PART_CHARS = 200


def for_both(error: ApiError) -> Shaped:
    """An error as all clients read it; a body that is no JSON object has the status 422 here."""
    if isinstance(error, InvalidJson) and not isinstance(error, UnknownMode):
        return _invalid(InvalidRequest(error.message), "json_invalid")
    if isinstance(error, InvalidRequest):
        return _invalid(error, "value_error")
    told = error_body(error)
    kind = _TYPES.get(error.status, error.type)
    detail = {"error_type": kind, "message": told["error"]["message"]}
    return {**told, "detail": detail}, error.status, {}


def _invalid(error: InvalidRequest, kind: str) -> Shaped:
    """A refused request, with every place that is known to be wrong."""
    places = error.places or [((), error.message)]
    detail = [_wrong(place, message, kind) for place, message in places]
    return {**error_body(error), "detail": detail}, error.status, {}


def _wrong(place: tuple[str, ...], message: str, kind: str) -> JsonObject:
    return {"loc": ["body", *(part[:_PART_CHARS] for part in place)], "msg": message, "type": kind}


def failures() -> Json:
    """All failures of the route, as its OpenAPI description has them."""
    told = record({"type": TEXT, "message": described(TEXT, "What was wrong, what is allowed.")})
    place = described(array(TEXT), "`body`, and the names of fields down to the place.")
    wrong = record({"loc": place, "msg": TEXT, "type": TEXT})
    other = record({"error_type": TEXT, "message": TEXT})
    either = record({"error": told, "detail": {"oneOf": [array(wrong), other]}})
    content = {"application/json": {"schema": either}}
    return {
        "4XX": {"description": "The request is wrong, or not allowed.", "content": content},
        "5XX": {"description": "The server or the models failed.", "content": content},
    }
