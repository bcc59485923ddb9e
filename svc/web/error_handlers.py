"""Every failure in the one shape `{"error": {"type", "message"}}`."""

from __future__ import annotations

import logging

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge
from werkzeug.exceptions import MethodNotAllowed as NoSuchMethod
from werkzeug.exceptions import NotFound as NoSuchRoute

from svc.errors import (
    ApiError,
    InternalError,
    InvalidJson,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    RateLimited,
    RequestTimeout,
    TooLarge,
    Unauthorized,
)
from svc.http import error_body
from svc.store import ProjectFull, StorageError, UnreadableKey
from svc.web.body import json_response, too_large_message

log = logging.getLogger(__name__)


def register(app: Flask) -> None:
    """Make `app` answer every exception in the error shape."""
    app.register_error_handler(ApiError, error_response)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(StorageError, _storage_error)
    app.register_error_handler(UnreadableKey, _refused)
    app.register_error_handler(ProjectFull, _refused)
    app.register_error_handler(Exception, _unforeseen)


def error_response(error: ApiError) -> Response:
    """The response for one of the project's own errors; those within are only logged."""
    if isinstance(error, InternalError):
        log.error("%s: %s", type(error).__name__, error.message)
    response = json_response(error_body(error), error.status)
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    response = error_response(_translated(error))
    if isinstance(error, NoSuchMethod) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _storage_error(error: StorageError) -> Response:
    return error_response(InternalError(error.message))


def _refused(error: UnreadableKey | ProjectFull) -> Response:
    return error_response(InvalidRequest(error.message))


def _translated(error: HTTPException) -> ApiError:
    """Werkzeug's exception as one of the project's own."""
    if isinstance(error, NoSuchRoute):
        return NotFound("no such route")
    if isinstance(error, NoSuchMethod):
        allowed = ", ".join(sorted(error.valid_methods or ()))
        return MethodNotAllowed(f"{request.method} is not allowed here; allowed: {allowed}")
    if isinstance(error, RequestEntityTooLarge):
        return TooLarge(too_large_message(current_app.config["MAX_CONTENT_LENGTH"]))
    if isinstance(error, ClientDisconnected) and isinstance(error.__context__, TimeoutError):
        return RequestTimeout("the body did not come in time; send it faster, or try again later")
    if isinstance(error, ClientDisconnected):
        return InvalidJson("the body ended before its announced length")
    if error.code is not None and 400 <= error.code < 500:
        return InvalidJson("the request could not be understood")
    return InternalError(f"an HTTP error was raised here: {type(error).__name__}")


def _unforeseen(error: Exception) -> Response:
    log.error("unforeseen exception", exc_info=error)
    return error_response(InternalError("see the line before"))
