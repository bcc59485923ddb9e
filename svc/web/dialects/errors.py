"""Errors in the shapes that clients of the dialects read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flask import request

from svc.errors import (
    ApiError,
    DollarsReserved,
    DollarsSpent,
    InvalidRequest,
    ModelUnavailable,
    OutOfCalls,
    QuotaSpent,
)
from svc.http import error_body
from svc.jsontext import JsonObject
from svc.phrases import visible
from svc.schemas import listed, walk
from svc.shapes import TEXT, Json, described, nullable, record
from svc.web.auth import GOOGLE_KEY
from svc.web.error_handlers import Shaped

# OpenAI's word for the kind of an error, by status; the others are by the hundred.
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_REST = {4: "invalid_request_error", 5: "server_error"}

# Google's word, by status; the others are by the hundred.
_STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}
_OTHER_STATUSES = {4: "INVALID_ARGUMENT", 5: "UNAVAILABLE"}

# So much of a caller's name for a field is repeated.
_NAME_CHARS = 60

# The same request would fail again.
_LASTING = (ModelUnavailable, OutOfCalls, QuotaSpent, DollarsSpent)


class BadParameter(InvalidRequest):
    """What is wrong with a request, and the first place where it is, such as `input[0].role`."""

    param: str = ""

    @classmethod
    def of(cls, messages: Any) -> BadParameter:
        """The error for the nested messages of a schema."""
        errors = [(_place(path), message) for path, message in walk(messages)]
        error = cls(listed(errors))
        error.param = errors[0][0]
        return error


def _place(path: tuple[str, ...]) -> str:
    return "".join(_steps(path)).removeprefix(".")


def _steps(path: tuple[str, ...]) -> Iterator[str]:
    for part in path:
        name = visible(part, _NAME_CHARS)
        yield f"[{name}]" if part.isdigit() else f".{name}" if part else ""


def from_google() -> bool:
    """Whether the request comes from a client of Google's APIs."""
    return GOOGLE_KEY in request.environ or request.path.startswith("/v1beta/")


def in_a_dialect(error: ApiError) -> Shaped:
    """An error as the client reads it, where a bad request always has the status 400.

    A header tells OpenAI's clients whether another attempt makes sense.
    """
    status = 400 if isinstance(error, InvalidRequest) else error.status
    lasting = isinstance(error, _LASTING) and not isinstance(error, DollarsReserved)
    again = (status in (408, 429) or status >= 500) and not lasting
    shaped = _as_google(error, status) if from_google() else _as_openai(error, status)
    return {"error": shaped}, status, {"x-should-retry": str(again).lower()}


def _as_openai(error: ApiError, status: int) -> JsonObject:
    told = error_body(error)["error"]
    return {
        "message": told["message"],
        "type": _TYPES.get(status, _REST[status // 100]),
        "param": getattr(error, "param", "") or None,
        "code": told["type"],
    }


def _as_google(error: ApiError, status: int) -> JsonObject:
    word = _STATUSES.get(status, _OTHER_STATUSES[status // 100])
    return {"code": status, "message": error_body(error)["error"]["message"], "status": word}


def failures() -> Json:
    """All failures of a route with dialects, as its OpenAPI description has them."""
    told = record(
        {
            "message": described(TEXT, "What was wrong, where, what is allowed."),
            "type": TEXT,
            "param": nullable(TEXT),
            "code": described(TEXT, "The `type` of the same error on other routes."),
        }
    )
    google = record({"code": {"type": "integer"}, "message": TEXT, "status": TEXT})
    either = record({"error": {"oneOf": [told, google]}})
    content = {"application/json": {"schema": either}}
    return {
        "4XX": {"description": "The request is wrong, or not allowed.", "content": content},
        "5XX": {"description": "The server or the models failed.", "content": content},
    }
