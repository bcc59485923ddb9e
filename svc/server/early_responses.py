"""The responses that the server gives without the application."""

from __future__ import annotations

import json
from http import HTTPStatus

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from svc.errors import ApiError, InternalError, InvalidJson, TooLarge
from svc.http import REQUEST_ID, SECURITY_HEADERS, error_body


def refusal(exception: object) -> ApiError:
    """The project's own error for what gunicorn raised about a request."""
    if isinstance(exception, LimitRequestLine | LimitRequestHeaders):
        return TooLarge("the request line or the headers are too long")
    if isinstance(exception, ParseException):
        return InvalidJson("this is not a valid HTTP request")
    return InternalError("a request failed outside the application")


def response(error: ApiError, request_id: str) -> bytes:
    """The whole of an error's response, from its status line to its body."""
    body = json.dumps(error_body(error))
    headers = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        REQUEST_ID: request_id,
        **SECURITY_HEADERS,
    }
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", body]).encode()
