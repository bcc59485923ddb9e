"""The provider calls of one flow: made at the same time, each with its own waits and retries.

Waiting, for a rate-limit slot or before a retry, happens here in the thread that asked; a thread
of the pool only ever carries out one HTTP attempt, so a stalled provider holds nobody else's.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from svc import limits
from svc.deadline import Deadline
from svc.errors import ENDING, ApiError, InternalError, Timeout
from svc.providers import (
    LIMITS,
    NO_CORRECTIONS,
    ChatCall,
    Completion,
    Corrections,
    DecisionCall,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Throttled,
    Traits,
)
from svc.records import Model
from svc.shares import Shares
from svc.threads import Threads

log = logging.getLogger(__name__)

Outcome: TypeAlias = Completion | ProviderError | ApiError

# How many parameters of one call may be refused, one after the other, before it fails.
PARAMETER_RETRIES = 4


class ChatClient(Protocol):
    """Carries out one HTTP attempt in the calling thread."""

    def call(
        self,
        model: Model,
        call: ChatCall | DecisionCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> Completion: ...


class Bill(Protocol):
    """Is told of each attempt at a call that is paid."""

    def leaves(self, call: Call, corrections: Corrections) -> None:
        """An attempt is about to be made; how it ends is not told where nobody waits for that."""

    def ended(self, call: Call, outcome: Outcome) -> None:
        """What came of an attempt."""

    def again(self, call: Call, failure: ProviderError, corrections: Corrections) -> Outcome | None:
        """None where there is room for one more attempt, else what the call ends with."""


class Unpaid:
    """The bill of calls that nothing pays."""

    def leaves(self, call: Call, corrections: Corrections) -> None:
        pass

    def ended(self, call: Call, outcome: Outcome) -> None:
        pass

    def again(self, call: Call, failure: ProviderError, corrections: Corrections) -> Outcome | None:
        return None


UNPAID = Unpaid()


class Calls(Protocol):
    """Carries out the calls of a flow."""

    def run(
        self,
        calls: Sequence[Call],
        deadline: Deadline,
        caller: str | None = None,
        bill: Bill = UNPAID,
    ) -> list[Outcome]: ...
    def close(self) -> None: ...


class Gate(Protocol):
    """Says how long a call to a provider has to wait: in its caller's line, and for its slot."""

    def line(self, provider: str, caller: str | None, max_wait: float, joined: bool) -> float: ...
    def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float: ...


@dataclass(frozen=True, slots=True)
class Call:
    """One provider call of a flow; `key` is a project's own key for the provider."""

    model: Model
    content: ChatCall | DecisionCall
    key: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class _PendingCall:
    """A call that has no outcome yet, over all its attempts; times are on the pool's clock."""

    call: Call
    caller: str | None
    bill: Bill
    start_at: float = 0.0
    # Whether the next attempt has made its caller's pause, stands in the caller's line, and
    # whether the gate has let it through.
    paced: bool = False
    joined: bool = False
    admitted: bool = False
    # Whether it found no room when it was due.
    crowded: bool = False
    retries: int = 0
    corrections: Corrections = NO_CORRECTIONS
    correction_count: int = 0
    outcome: Outcome | None = None


# The outcomes of attempts in the order in which they came; None wakes the thread that waits.
AttemptQueue: TypeAlias = SimpleQueue[tuple[_PendingCall, Outcome] | None]


class CallPool:
    """Bounded threads for provider calls."""

    def __init__(
        self,
        client: ChatClient,
        gate: Gate,
        threads: int,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        paused: Callable[[float], None] = lambda _wait_s: None,
    ) -> None:
        """`paused` is told for how many seconds a call waits for a rate limit."""
        self._client, self._gate, self._clock, self._jitter = client, gate, clock, jitter
        self._paused = paused
        self._places, self._bytes = Shares(threads), Shares(limits.CALLS_BYTES)
        self._threads = Threads(threads, "svc-call")
        self._closed = False

    def run(
        self,
        calls: Sequence[Call],
        deadline: Deadline,
        caller: str | None = None,
        bill: Bill = UNPAID,
    ) -> list[Outcome]:
        """Carry out `calls` at the same time; the outcome of each, in their order.

        They take turns with those of other callers. Raises `Timeout` when the deadline passes
        first, or the pool is closed, `QuotaSpent` and `StorageError` where the gate does.
        """
        pending = [_PendingCall(call, caller, bill) for call in calls]
        deadline.effort.caller = caller
        attempts: AttemptQueue = SimpleQueue()
        with deadline.interrupting(lambda: attempts.put(None)):
            self._finish(pending, attempts, deadline)
        return [one.outcome for one in pending if one.outcome is not None]

    def close(self) -> None:
        """Let no further call start, and wait for those under way."""
        self._closed = True
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _finish(
        self, pending: Sequence[_PendingCall], attempts: AttemptQueue, deadline: Deadline
    ) -> None:
        """Start what is due and take outcomes in, until every call has one."""
        waiting = list(pending)
        while True:
            deadline.check()
            if self._closed:
                raise Timeout("the server stops, and the time for what is under way is over")
            waiting = self._started(waiting, deadline, attempts)
            if all(one.outcome is not None for one in pending):
                return
            wake_at = min([deadline.at, *(one.start_at for one in waiting)])
            try:
                ended = attempts.get(timeout=max(0.0, wake_at - self._clock()))
            except Empty:
                continue
            if ended is None:
                # The deadline was cancelled, and the next check raises.
                continue
            one, outcome = ended
            one.bill.ended(one.call, outcome)
            if (
                isinstance(outcome, ProviderError)
                and self._again(one, outcome, deadline)
                and _room_again(one, deadline)
            ):
                one.outcome = one.bill.again(one.call, outcome, one.corrections)
                waiting += [one] * (one.outcome is None)
            else:
                one.outcome = outcome

    def _started(
        self, waiting: Sequence[_PendingCall], deadline: Deadline, attempts: AttemptQueue
    ) -> list[_PendingCall]:
        """Start the calls that are due, until one finds no room; returns those that wait."""
        left: list[_PendingCall] = []
        look_at = 0.0
        for one in waiting:
            one.start_at = max(one.start_at, look_at)
            if not self._start(one, deadline, attempts):
                left.append(one)
                look_at = one.start_at if one.crowded else look_at
        return left

    def _start(self, pending: _PendingCall, deadline: Deadline, attempts: AttemptQueue) -> bool:
        """Start a call that is due; False while it has to wait."""
        if pending.start_at > self._clock() or not self._paced(pending, deadline):
            return False
        if not pending.admitted:
            try:
                wait_s = self._wait_s(pending, deadline)
            except ENDING:
                raise
            except ApiError as error:
                pending.outcome = error
                return True
            if wait_s > 0:
                pending.start_at = self._clock() + wait_s
                self._paused(wait_s)
                return False
        pending.crowded = not self._has_room(pending)
        if pending.crowded:
            pending.start_at = self._clock() + limits.ROOM_LOOK_S
            return False
        pending.admitted = pending.joined = pending.paced = False
        pending.bill.leaves(pending.call, pending.corrections)
        self._threads.submit(self._attempt, pending, deadline, attempts)
        return True

    def _paced(self, pending: _PendingCall, deadline: Deadline) -> bool:
        """Whether the attempt may be made now; else it waits, once, for the pauses of its key."""
        if not pending.paced:
            pending.paced = True
            pause_s = deadline.effort.pause_s()
            pending.start_at = self._clock() + pause_s
            return pause_s <= 0
        return True

    def _wait_s(self, pending: _PendingCall, deadline: Deadline) -> float:
        """Seconds for which a call has to wait now; it is admitted then, or asks again."""
        provider, left_s = pending.call.model.provider, deadline.left()
        wait_s = self._gate.line(provider, pending.caller, left_s, pending.joined)
        pending.joined = True
        if wait_s > 0:
            return wait_s
        pending.admitted = True
        return self._gate.delay(provider, left_s, pending.caller)

    def _has_room(self, pending: _PendingCall) -> bool:
        """Take the call's thread and its bytes from what its caller may have of both."""
        return self._places.take_with(self._bytes, pending.caller, _counted(pending))

    def _attempt(self, pending: _PendingCall, deadline: Deadline, attempts: AttemptQueue) -> None:
        try:
            with deadline.effort.counted():
                outcome = self._outcome(pending, deadline)
        finally:
            self._places.give_back(pending.caller)
            self._bytes.give_back(pending.caller, _counted(pending))
        if outcome is not None:
            attempts.put((pending, outcome))

    def _outcome(self, pending: _PendingCall, deadline: Deadline) -> Outcome | None:
        """What came of one attempt; None where nobody waits for it."""
        left_s = deadline.left()
        if left_s <= 0:
            # The caller's deadline has passed.
            return None
        call = pending.call
        try:
            return self._client.call(
                call.model, call.content, left_s, call.key, deadline, pending.corrections
            )
        except ProviderError as error:
            # Its traceback would keep this frame alive, and this frame the error.
            return error.with_traceback(None)
        except Exception:
            # The thread that waits must hear of it, or it would wait for its whole deadline.
            log.exception("a provider call failed in an unforeseen way")
            return InternalError("something failed here while a model was asked")

    def _again(self, pending: _PendingCall, error: ProviderError, deadline: Deadline) -> bool:
        """Whether a call that failed is tried once more; if so, its next start is set."""
        if not error.retry:
            return False
        if isinstance(error, ParameterRefused):
            pending.correction_count += 1
            pending.start_at = 0.0
            return pending.correction_count <= PARAMETER_RETRIES and _corrects(pending, error)
        pause_s = self._pause_s(pending.retries) if error.retry_after is None else error.retry_after
        pending.retries += 1
        pending.start_at = self._clock() + pause_s
        again = pending.retries <= limits.CALL_RETRIES and pause_s < deadline.left()
        if again and isinstance(error, Throttled):
            self._paused(pause_s)
        return again

    def _pause_s(self, retries: int) -> float:
        """Exponential backoff with full jitter on its upper half."""
        longest_s = min(limits.RETRY_CAP_S, limits.RETRY_BASE_S * 2.0**retries)
        return longest_s * (0.5 + 0.5 * self._jitter())


def _counted(pending: _PendingCall) -> int:
    """The bytes of a call, 0 where they are so few that they do not count."""
    size = pending.call.content.size
    return size if size >= limits.CALL_BYTES_UNCOUNTED else 0


def _room_again(pending: _PendingCall, deadline: Deadline) -> bool:
    """Whether the request may send the call once more.

    Later attempts find half of what earlier ones could take, and so on: of many calls to a model
    that refuses several parameters mostly one succeeds then, so that the next request knows of
    them.
    """
    effort = deadline.effort
    if not effort.replies_s.has_left(pending.call.model.id):
        return False
    attempts = pending.retries + pending.correction_count
    kept = limits.SENT_AGAIN_BYTES >> attempts
    return effort.sent_again.take(_counted(pending), kept)


def _corrects(pending: _PendingCall, error: ParameterRefused) -> bool:
    """Correct a call by what was refused; False where that was corrected before."""
    before = pending.corrections
    pending.corrections = corrected(before, error)
    return pending.corrections.all != before.all


def corrected(before: Corrections, error: ParameterRefused) -> Corrections:
    """The corrections of a call after one more refusal."""
    return before.plus(_correction(error), error.lasting)


def _correction(error: ParameterRefused) -> Traits:
    if not isinstance(error, ParameterBounded):
        return Traits(refused=frozenset({error.parameter}))
    if error.parameter not in LIMITS:
        return Traits(top_logprobs=error.bound)
    return Traits(most_tokens=error.bound) if error.upper else Traits(least_tokens=error.bound)
