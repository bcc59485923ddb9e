"""Every failure in the one shape `{"error": {"type", "message"}}`."""

from __future__ import annotations

import errno
import gc
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from flask import Blueprint, Flask, Response, current_app, request
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
from svc.jsontext import JsonObject
from svc.store import ProjectFull, StorageError, UnknownJob, UnreadableKey
from svc.web.body import SMALL_BYTES, json_response, too_large_message

# Body, status and own headers of the response to an error.
Shaped = tuple[JsonObject, int, Mapping[str, str]]
Shape = Callable[[ApiError], Shaped]

# The generations of the collector that hold what was made lately. They are small.
_YOUNG = 1

log = logging.getLogger(__name__)


def in_the_one_shape(error: ApiError) -> Shaped:
    """The shape and the status of every route that has no dialect of its own."""
    return dict(error_body(error)), error.status, {}


def register(routes: Flask | Blueprint, shape: Shape = in_the_one_shape) -> None:
    """Make `routes` answer every exception in the error shape, or in a shape of their own."""

    def respond(error: ApiError) -> Response:
        return error_response(error, shape)

    def http_error(error: HTTPException) -> Response:
        response = respond(_translated(error))
        if isinstance(error, NoSuchMethod) and error.valid_methods:
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
        return response

    def storage_error(error: StorageError) -> Response:
        return respond(InternalError(error.message))

    def refused(error: UnreadableKey | ProjectFull) -> Response:
        return respond(InvalidRequest(error.message))

    def unknown(error: UnknownJob) -> Response:
        return respond(NotFound(error.message))

    def nested(error: RecursionError) -> Response:
        # What the parser took may be too deep for what is made of it, further down.
        log.warning("a body is nested too deeply, or a function calls itself without end")
        return respond(InvalidJson("the body is nested too deeply"))

    def unforeseen(error: Exception) -> Response:
        log.error("unforeseen exception", exc_info=error)
        return respond(InternalError("see the line before"))

    routes.register_error_handler(ApiError, _freeing(respond))
    routes.register_error_handler(HTTPException, _freeing(http_error))
    routes.register_error_handler(StorageError, _freeing(storage_error))
    routes.register_error_handler(UnreadableKey, _freeing(refused))
    routes.register_error_handler(ProjectFull, _freeing(refused))
    routes.register_error_handler(UnknownJob, _freeing(unknown))
    routes.register_error_handler(RecursionError, _freeing(nested))
    routes.register_error_handler(Exception, _freeing(unforeseen))


def error_response(error: ApiError, shape: Shape = in_the_one_shape) -> Response:
    """The response for one of the project's own errors; those within are only logged."""
    if isinstance(error, InternalError):
        log.error("%s: %s", type(error).__name__, error.message)
    body, status, headers = shape(error)
    response = json_response(body, status)
    response.headers.update(headers)
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _freeing(handler: Callable[[Any], Response]) -> Callable[[Any], Response]:
    """The handler, which frees what led to an error once its response is made.

    An error holds the frames that it came through, these hold the body, and some of them an error:
    such circles would keep large bodies in memory until the collector comes by itself, which it
    does after so many objects, however large these are.
    """

    @wraps(handler)
    def handle(error: BaseException) -> Response:
        try:
            return handler(error)
        finally:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            if request.content_length is None or request.content_length > SMALL_BYTES:
                gc.collect(_YOUNG)

    return handle


def _is_cut_small(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EMSGSIZE


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
    if isinstance(error, ClientDisconnected) and _is_cut_small(error.__context__):
        return TooLarge(
            "the body comes in too many chunks, or with too much around them; send larger ones"
        )
    if isinstance(error, ClientDisconnected):
        return InvalidJson("the body ended before its announced length")
    if error.code is not None and 400 <= error.code < 500:
        return InvalidJson("the request could not be understood")
    return InternalError(f"an HTTP error was raised here: {type(error).__name__}")
