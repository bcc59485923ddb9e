"""What can go wrong between a program and the service.

ServiceError
├── NoAnswer           no answer came: no connection, or not in time
└── Refused            the service answered with an error
    ├── Unauthorized       401  the API key is missing, unknown or revoked
    ├── Forbidden          403  the key is for another project
    ├── NotFound           404  there is no such decision or question
    ├── InvalidRequest     400, 422 and others  the request cannot be carried out
    ├── RateLimited        429  has `retry_after`, in seconds
    ├── ModelFailed        502, 504  no model answered, or not in time
    └── ServerFailed       500, 503  the service failed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """Anything that keeps the service from answering."""


class NoAnswer(ServiceError):
    """No answer came: no connection, or not in time."""


class Refused(ServiceError):
    """The service answered with an error; `type` is the service's word for it.

    `retry_after` is after how many seconds to try again, None where the service does not say.
    """

    retry_after: float | None = None

    def __init__(self, status: int, type: str, message: str, request_id: str) -> None:  # noqa: A002
        super().__init__(f"{message} (status {status}, request {request_id})")
        self.status, self.type, self.message, self.request_id = status, type, message, request_id


class Unauthorized(Refused):
    """The API key is missing, unknown or revoked."""


class Forbidden(Refused):
    """The API key is for another project, or the request came in a way that is not allowed."""


class NotFound(Refused):
    """There is no such decision or question, or the key may not see it."""


class InvalidRequest(Refused):
    """The request cannot be carried out; the message says what is wrong with it."""


class RateLimited(Refused):
    """A limit is reached; `retry_after` is in seconds."""

    retry_after: float = 1.0


class ModelFailed(Refused):
    """No model answered, or not in time."""


class ServerFailed(Refused):
    """The service failed."""


_BY_STATUS = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    429: RateLimited,
    500: ServerFailed,
    502: ModelFailed,
    503: ServerFailed,
    504: ModelFailed,
}


def refused(status: int, headers: Mapping[str, str], body: Any) -> Refused:
    """The error that an answer of the service is."""
    said = body.get("error") if isinstance(body, dict) else None
    said = said if isinstance(said, dict) else {}
    kind = _BY_STATUS.get(status, ServerFailed if status > 500 else InvalidRequest)
    message = said.get("message") or "the answer is not one of the service; look at the base URL"
    error = kind(status, said.get("type", "unknown"), message, headers.get("x-request-id", "-"))
    if "Retry-After" in headers:
        error.retry_after = seconds(headers["Retry-After"])
    return error


def seconds(retry_after: str) -> float:
    """The seconds of a `Retry-After` header; 1 where it is no number."""
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 1.0
