"""Every error that this project raises on purpose.

    SvcError
    ├── SettingsError            stops the start; one line that names the variable or option
    ├── StorageError, UnknownDecision and others: the store's own, see `svc/store/errors.py`
    ├── Pending                  ends a decision until the reply to one of its calls is there
    └── ApiError                 has the HTTP status and the `type` that the caller sees
        ├── InvalidJson          400  invalid_json
        │   └── UnknownMode           the request names a mode that there is not
        ├── Unauthorized         401  unauthorized
        ├── Forbidden            403  forbidden
        ├── NotFound             404  not_found
        ├── MethodNotAllowed     405  method_not_allowed
        ├── RequestTimeout       408  request_timeout
        ├── TooLarge             413  too_large
        ├── UnsupportedMedia     415  unsupported_media_type
        ├── InvalidRequest       422  invalid_request
        ├── RateLimited          429  rate_limited, always with `retry_after`
        │   ├── NoSlotInTime          a provider's rate has no slot before the deadline
        │   ├── BudgetSpent           the daily budget of the aggregator's calls is spent
        │   ├── QuotaSpent            the daily budget of calls is spent, and the decision ends
        │   └── DollarsSpent          a budget in dollars is spent; a cheaper model may answer
        │       └── JobSpent          it is that of a job, which never renews
        ├── InternalError        500  internal_error
        ├── ModelError           502  model_error
        │   ├── OutOfCalls            the request has made all the model calls it may
        │   └── NoAnswer              the model works, but gave no valid answer to these questions
        ├── ModelUnavailable     502  model_unavailable
        ├── NotReady             503  not_ready
        └── Timeout              504  timeout

Messages of `ApiError` are written for the caller: they never hold a provider's words, a secret
or any part of a state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self


class SvcError(Exception):
    """Anything that this project raises on purpose."""

    @property
    def message(self) -> str:
        return str(self)


class SettingsError(SvcError):
    """A setting that stops the start; the message names it and what is allowed."""


class Damaged(SettingsError):
    """What a run has written down is not there as it was written; the message says where."""


class Pending(SvcError):
    """The reply to a call is not there yet; the decision is made again once it is.

    It is no `ApiError`, so that nothing takes it for a model that failed, and no caller sees it.
    """


class ApiError(SvcError):
    """An error with a place in the HTTP interface."""

    status = 500
    type = "internal_error"

    def saying(self, message: str) -> Self:
        """The same error with another message."""
        error = type(self).__new__(type(self), message)
        error.__dict__.update(self.__dict__)
        return error

    def about(self, subject: str) -> Self:
        """The same error, with a message that says first what it is about."""
        return self.saying(f"{subject}: {self.message}")


class InvalidJson(ApiError):
    """The HTTP is invalid, the body is not a JSON object, or a mode or question type is unknown."""

    status = 400
    type = "invalid_json"


class UnknownMode(InvalidJson):
    """The request names a mode that there is not."""


class Unauthorized(ApiError):
    """Keys exist, and none, an unknown or a revoked one was sent."""

    status = 401
    type = "unauthorized"


class Forbidden(ApiError):
    """The caller may not do this here."""

    status = 403
    type = "forbidden"


class NotFound(ApiError):
    """There is no such route, decision or question, or the caller may not see it."""

    status = 404
    type = "not_found"


class MethodNotAllowed(ApiError):
    """The route exists, but not for this method."""

    status = 405
    type = "method_not_allowed"


class RequestTimeout(ApiError):
    """The body did not come in time."""

    status = 408
    type = "request_timeout"


class TooLarge(ApiError):
    """The body, or the head, is larger than the server takes."""

    status = 413
    type = "too_large"


class UnsupportedMedia(ApiError):
    """The body is in an encoding that cannot be decoded."""

    status = 415
    type = "unsupported_media_type"


class InvalidRequest(ApiError):
    """The body is JSON but not a request that can be carried out.

    `places` are the first wrong ones with their messages, each by the names of fields down to it,
    where they are known.
    """

    status = 422
    type = "invalid_request"
    places: Sequence[tuple[tuple[str, ...], str]] = ()


class NotConfigured(InvalidRequest):
    """The server has no provider for a model; it may have one after its next start."""


class RateLimited(ApiError):
    """A rate limit of the key or of a provider, or the daily budget of calls, is used up."""

    status = 429
    type = "rate_limited"

    def __init__(self, message: str, retry_after: float) -> None:
        """`retry_after` is in seconds; the header gets it rounded up, at least 1."""
        super().__init__(message)
        self.retry_after = max(1, math.ceil(retry_after))


class NoSlotInTime(RateLimited):
    """A provider's rate has no slot before the deadline; a caller with more time may have one."""


class BudgetSpent(RateLimited):
    """The daily budget of calls to the aggregator is spent; other providers may answer."""


class QuotaSpent(RateLimited):
    """The daily budget of calls is spent, which ends the decision."""


class DollarsSpent(RateLimited):
    """A budget in dollars has no room for a call; a model that costs less may answer.

    `budget` names it. `calls_under_way` says that others have reserved a part of it.
    """

    def __init__(
        self, message: str, retry_after: float, budget: str = "", calls_under_way: bool = False
    ) -> None:
        """`retry_after` is in seconds, until the budget renews."""
        super().__init__(message, retry_after)
        self.budget, self.calls_under_way = budget, calls_under_way


class DollarsReserved(DollarsSpent):
    """What is left of a budget is reserved for calls under way, which may cost less."""


class JobSpent(DollarsSpent):
    """The budget of a job has no room for a call."""


class InternalError(ApiError):
    """Something failed on the server that the caller did not cause."""


class ModelError(ApiError):
    """Every model that could have answered failed."""

    status = 502
    type = "model_error"


class OutOfCalls(ModelError):
    """The request has made all the model calls that it may."""


class WrongWay(ModelError):
    """The model cannot be asked in the way in which the request wants it."""


class PartlyLimited(ModelError):
    """Of several models the rate of some is used up, and waiting does not help the others."""

    def __init__(self, message: str, retry_after: float) -> None:
        """`retry_after` is in seconds, until the first of them may be asked again."""
        super().__init__(message)
        self.retry_after = retry_after


class NoAnswer(ModelError):
    """A model works, but gave no valid answer; it may answer some of the questions alone."""


class ModelUnavailable(ApiError):
    """The model does not exist, was retired, or is closed to the provider account."""

    status = 502
    type = "model_unavailable"


class NotReady(ApiError):
    """The server lives, but cannot do its work now; asked for by `GET /ready` alone."""

    status = 503
    type = "not_ready"


class Timeout(ApiError):
    """The request's deadline passed."""

    status = 504
    type = "timeout"


# These end a decision at once, because no other model and no other way of asking could help.
ENDING = (Timeout, InternalError, QuotaSpent)

# These say that models gave no answer, or not in time, to a request that was right.
MODELS_FAULT = (ModelError, ModelUnavailable, RateLimited, Timeout)


# These are of the request or of its models, as it asks them: waiting does not help.
LASTING_FAULT = (WrongWay, OutOfCalls, ModelUnavailable)


def together(errors: Sequence[ApiError]) -> ApiError:
    """The one error that stands for several models that failed, with the words of each.

    All rate-limited: the soonest `RateLimited`; all of one other kind: that kind; where waiting
    would help none of them, `NoAnswer` if a model works and gave none, or else `WrongWay`; where
    it helps those alone whose rate is used up, `PartlyLimited`; otherwise `ModelError`.
    """
    limited = [error for error in errors if isinstance(error, RateLimited)]
    if len(limited) == len(errors):
        return min(limited, key=lambda error: error.retry_after)
    words = "; ".join(dict.fromkeys(error.message for error in errors))
    if len({type(error) for error in errors}) == 1:
        return errors[0].saying(words)
    others = [error for error in errors if not isinstance(error, (*LASTING_FAULT, NoAnswer))]
    if others and all(type(error) in (RateLimited, NoSlotInTime) for error in others):
        return PartlyLimited(words, min(error.retry_after for error in limited))
    if others:
        return ModelError(words)
    works = any(isinstance(error, NoAnswer) for error in errors)
    return NoAnswer(words) if works else WrongWay(words)


def statuses() -> set[int]:
    """The status of every error that a caller may get."""
    kinds = [one for one in globals().values() if isinstance(one, type)]
    return {kind.status for kind in kinds if issubclass(kind, ApiError)}
