"""What every HTTP response has in common, whether the application or the server makes it."""

from __future__ import annotations

from svc.errors import ApiError, InternalError

REQUEST_ID = "x-request-id"

# The key of the WSGI environment for the time at which a request's head was complete, in seconds on
# the monotonic clock.
ARRIVED = "svc.arrived"

# The key of the WSGI environment for a function that is given what to call when the caller closes
# its side of the connection before it has its answer.
LEAVING = "svc.leaving"

# The key of the WSGI environment that is there once the application knows who asks.
KNOWN = "svc.known"

# The key of the WSGI environment that is there where anybody may look at the server.
LOOKS = "svc.looks"

# The status of a request whose caller did not wait for the answer, in the log and the metrics
# alone: the one that nginx gives to it there.
CALLER_LEFT = 499

# The routes that only look at the server, which never wait for the requests of others.
WATCHING = frozenset({"/health", "/ready", "/metrics"})

# Every response has these headers, unless it says something else under the same name. The names
# are in lower case.
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def error_body(error: ApiError) -> dict[str, dict[str, str]]:
    """The JSON of an error's response, without the message of an internal error."""
    message = error.message
    if isinstance(error, InternalError):
        message = "something failed on the server; its log has the request id"
    return {"error": {"type": error.type, "message": message}}
