"""Decisions from replies that are known, made in the caller's thread and with nothing to wait for.

A call whose reply is not known raises `Pending`. All calls that a decision needs at the same time
are made before that, so that whoever keeps the replies hears of each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from svc.deadline import Deadline
from svc.engine.calls import PARAMETER_RETRIES, UNPAID, Bill, Call, ChatClient, Outcome, corrected
from svc.flows import each_of
from svc.providers import NO_CORRECTIONS, ParameterRefused, ProviderError


class ReplayedCalls:
    """Carries out the calls of a flow by a client that knows replies."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    def run(
        self,
        calls: Sequence[Call],
        deadline: Deadline,
        caller: str | None = None,
        bill: Bill = UNPAID,
    ) -> list[Outcome]:
        """The outcome of each call, in their order. Raises `Pending` where one has none yet."""
        return each_of([partial(self._outcome, call, deadline) for call in calls])

    def close(self) -> None:
        """Nothing is under way."""

    def _outcome(self, call: Call, deadline: Deadline) -> Outcome:
        """What came of a call, which is made again without what a provider refused."""
        corrections = NO_CORRECTIONS
        for _ in range(PARAMETER_RETRIES + 1):
            try:
                return self._client.call(
                    call.model, call.content, deadline.left(), call.key, deadline, corrections
                )
            except ParameterRefused as error:
                failure: ProviderError = error.with_traceback(None)
                before, corrections = corrections, corrected(corrections, error)
                if corrections.all == before.all:
                    break
            except ProviderError as error:
                return error.with_traceback(None)
        return failure
