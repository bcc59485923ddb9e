"""What one call to a provider may end in.

    ProviderError
    ├── Throttled              429: again after `retry_after`
    ├── Resting                not asked now: its exchanges took too much of a processor
    ├── ServerTrouble          5xx or a broken connection: again after a pause
    │   └── BrokenReply        it broke later than at its beginning: that may be charged
    ├── ParameterRefused       again at once without the parameter, which is remembered
    │   └── ParameterBounded   again at once with the value that the provider allows
    ├── NotThisWay             the model cannot be asked in this way; another one may work
    │   ├── NoLogprobs         it has no usable label probabilities
    │   │   └── UnusableLogprobs   it answered all the same
    │   └── FormatRefused      it does not take this format of reply
    ├── Gone                   no such model, or not for this account
    ├── Refused                any other refusal: a policy, a request that it will not take
    │   ├── Withheld           the model was asked, and its answer was kept back
    │   ├── KeyRefused         the provider does not accept the key
    │   ├── NoCredit           the account has no credit left
    │   └── Unanswerable       a decision server has no way to answer such a question
    ├── BadReply               a reply that is no completion
    │   ├── Cut                the output limit was used up before an answer began
    │   ├── Unread             the replies to its request hold more than is read of them
    │   └── Overlong           it is longer than any reply to what was asked
    ├── CallTimedOut           the call's time is over
    │   └── KeptBusy           its connection took too much of a processor
    └── Cancelled              cut off by this server

`str(error)` is for the server's log alone and holds provider words only after redaction;
`as_api_error` is what a caller may see.
"""

from __future__ import annotations

from collections.abc import Sequence

from svc import limits
from svc.errors import (
    ApiError,
    ModelError,
    ModelUnavailable,
    NoAnswer,
    RateLimited,
    WrongWay,
    together,
)
from svc.usage import NO_USAGE, StatedUsage


class ProviderError(Exception):
    """One HTTP attempt that gave no completion."""

    # Whether the same call may succeed later.
    retry = False
    # Whether the provider may charge it all the same.
    may_be_charged = False
    # What the reply says that the call used.
    usage: StatedUsage = NO_USAGE
    # The caller reads these in place of the provider's words: what went wrong, and what to do.
    public_message = "the model gave no valid answer"
    advice = "try a larger model, or one that follows instructions"
    # The kind of error that the caller sees.
    public_error: type[ModelError] = ModelError

    def __init__(self, detail: str = "", retry_after: float | None = None) -> None:
        """`detail` is for the log; `retry_after` is in seconds, None where nothing was said."""
        super().__init__(detail)
        self.retry_after = retry_after

    def as_api_error(self) -> ApiError:
        """The error for the caller, without a word of the provider's."""
        return self.public_error(f"{self.public_message} ({self.advice})")


class Throttled(ProviderError):
    """The provider limits the rate of calls."""

    retry = True

    def as_api_error(self) -> ApiError:
        wait = limits.RETRY_CAP_S if self.retry_after is None else self.retry_after
        return RateLimited("the model's provider limits the rate of calls", wait)


class Resting(ProviderError):
    """Nothing was sent, since the exchanges before took too much of a processor."""

    public_message = "the model's provider kept the server busy, and is not asked for a while"
    advice = "see that SVC_PROVIDER_<NAME>_URL is its base URL, and that nobody else answers there"

    def as_api_error(self) -> ApiError:
        """One that rows of jobs wait after, as no call was sent."""
        wait = limits.RETRY_CAP_S if self.retry_after is None else self.retry_after
        return RateLimited(f"{self.public_message} ({self.advice})", wait)


class ServerTrouble(ProviderError):
    """The provider failed, or the connection broke."""

    retry = True
    public_message = "the model's provider failed or could not be reached"
    advice = "see that the server runs and that SVC_PROVIDER_<NAME>_URL is its base URL"


class BrokenReply(ServerTrouble):
    """The connection broke once it was there: while the call was sent, or a good reply came."""

    may_be_charged = True


class ParameterRefused(ProviderError):
    """The model does not take `parameter`; the same call without it may succeed at once."""

    retry = True
    public_message = "the model's provider refused the call"
    advice = "SVC_LOG_LEVEL=warning shows what the provider said"

    def __init__(self, parameter: str, detail: str = "", lasting: bool = True) -> None:
        """`lasting` says that every call would meet the refusal, so that it may be remembered."""
        super().__init__(detail, retry_after=0.0)
        self.parameter, self.lasting = parameter, lasting


class ParameterBounded(ParameterRefused):
    """The model takes `parameter` within a bound only, which the call broke."""

    def __init__(
        self, parameter: str, bound: int, detail: str = "", upper: bool = True, lasting: bool = True
    ) -> None:
        """`upper` says that the value was too large.

        A bound that does not last comes from the length of this one call.
        """
        super().__init__(parameter, detail, lasting)
        self.bound, self.upper = bound, upper


class NotThisWay(ProviderError):
    """The model cannot be asked in this way; another way may succeed."""

    public_error: type[ModelError] = WrongWay
    public_message = "the model's provider refused the call"
    advice = "SVC_LOG_LEVEL=warning shows what the provider said"


class NoLogprobs(NotThisWay):
    """Log-probabilities were asked for, and there are none that could be used."""

    public_message = "the model gives no log-probabilities that could be used"
    advice = "mode auto or verbal may find another way"


class UnusableLogprobs(NoLogprobs):
    """The model answered, with log-probabilities that cannot be used or without any."""

    may_be_charged = True
    # Each call may cost money, so that jobs wait after a few, as in an outage.
    public_error = ModelError


class FormatRefused(NotThisWay):
    """A format of reply was asked for that the model does not take."""


class Gone(ProviderError):
    """The model does not exist, was retired, or is closed to the account."""

    def as_api_error(self) -> ApiError:
        return ModelUnavailable("the model does not exist or is not open to this account")


class Refused(ProviderError):
    """The provider will not take the call, and asking again would not help."""

    public_message = "the model's provider refused the call"
    advice = "SVC_LOG_LEVEL=warning shows what the provider said"
    public_error: type[ModelError] = NoAnswer


class Withheld(Refused):
    """The model was asked, and a filter or the server kept its answer back."""

    may_be_charged = True


class KeyRefused(Refused):
    """The provider does not accept the key."""

    public_message = "the model's provider does not accept the key"
    advice = "check the provider's key variable"
    public_error = ModelError


class NoCredit(Refused):
    """The account at the provider has no credit left; waiting does not help."""

    public_message = "the account at the model's provider has no credit left"
    advice = "add credit to the account"
    public_error = ModelError


class Unanswerable(Refused):
    """A decision server has no way to answer a question; `detail` says which and why."""

    def as_api_error(self) -> ApiError:
        # These words are the project's own, so the caller may read them.
        return NoAnswer(str(self))


class BadReply(ProviderError):
    """The provider answered, but not with a completion."""

    may_be_charged = True
    public_error: type[ModelError] = NoAnswer


class Cut(BadReply):
    """The output limit was used up before an answer began, for example by thought."""

    public_message = "the model used up the output limit before it began to answer"


# What the log says where replies are not read since others took too much of a processor.
TAKE_TOO_LONG = "the replies to this request take longer to read than is given to them"


class Unread(BadReply):
    """The replies to its request hold more than is read of them, which others may have sent."""

    public_message = "the models' replies to this request hold more than is read of them"
    advice = "ask fewer questions or models at once"


class Overlong(BadReply):
    """A reply is longer than any to what was asked."""


class CallTimedOut(ProviderError):
    """The whole call took longer than its limit."""

    may_be_charged = True
    public_message = "the model took too long to answer"
    advice = "raise SVC_PROVIDER_<NAME>_TIMEOUT, or take a faster model"


class KeptBusy(CallTimedOut):
    """The connection took too much of a processor, such as by records of TLS that hold nothing."""

    public_message = "the model's provider kept the server busy without an answer"
    advice = "see that SVC_PROVIDER_<NAME>_URL is its base URL, and that nobody else answers there"


class Cancelled(ProviderError):
    """The call was cut off by this side."""

    may_be_charged = True


def api_error_of(failures: Sequence[ProviderError | ApiError]) -> ApiError:
    """The one error that stands for several failed calls, see `svc.errors.together`."""
    return together([f.as_api_error() if isinstance(f, ProviderError) else f for f in failures])
