"""When a request is worth another try, and how long to wait before it."""

from __future__ import annotations

import random

from svc.client.errors import Refused, ServiceError

# The first pause before a request is sent again; each further one is twice as long.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

# What another try may mend: a limit, a failed model, a server that is being started again. What
# took too long already is not tried again, nor what is limited for longer than `LONGEST_WAIT_S`.
_PASSING = (429, 500, 502, 503)
_NO_SUCH_MODEL = "model_unavailable"
LONGEST_WAIT_S = 120.0


def may_pass(error: ServiceError) -> bool:
    """Whether another try may mend it."""
    if not isinstance(error, Refused):
        return True
    waits = (error.retry_after or 0.0) <= LONGEST_WAIT_S
    return error.status in _PASSING and error.type != _NO_SUCH_MODEL and waits


def pause_s(error: ServiceError, tried: int) -> float:
    """How long to wait; the service's own word, or twice as long each time, and a bit by chance."""
    if isinstance(error, Refused) and error.retry_after is not None:
        return error.retry_after
    # Doubled more often, the pause would be too large a number long before it is too long.
    pause: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tried, 16))
    return pause * random.uniform(0.5, 1.0)
