"""One flow's provider calls: made at the same time, each with its own waits and retries.

Waiting, for a rate-limit slot or before a retry, happens here in the thread that asked; a thread
of the pool only ever carries out one HTTP attempt, so a stalled provider holds nobody else's.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from svc import limits
from svc.deadline import Deadline
from svc.errors import ENDING, ApiError, InternalError
from svc.providers.bodies import ChatCall
from svc.providers.failures import CallError, ParameterBounded, ParameterRefused
from svc.providers.protocol import DecisionCall
from svc.providers.refusals import LIMITS
from svc.providers.replies import Completion
from svc.providers.traits import NO_CORRECTIONS, Corrections, Traits
from svc.records import Model

log = logging.getLogger(__name__)

Outcome: TypeAlias = Completion | CallError | ApiError
PARAMETER_RETRIES = 4  # parameters of one call that may be refused, one after the other


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


class Gate(Protocol):
    """Says how long a call to a provider has to wait."""

    def delay(self, provider: str, max_wait: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Call:
    """One provider call of a flow."""

    model: Model
    content: ChatCall | DecisionCall
    key: str | None = field(default=None, repr=False)  # a project's own


@dataclass(slots=True)
class _Flight:
    """A call under way, over all its attempts."""

    call: Call
    start_at: float = 0.0
    admitted: bool = False
    retries: int = 0
    corrections: Corrections = NO_CORRECTIONS
    corrected: int = 0  # how often
    outcome: Outcome | None = field(default=None)


# What came of flights, in the order they landed; None wakes the one who waits.
Landed: TypeAlias = SimpleQueue[tuple[_Flight, Outcome] | None]


class CallPool:
    """Bounded threads for provider calls."""

    def __init__(
        self,
        client: ChatClient,
        gate: Gate,
        threads: int,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._gate, self._clock, self._jitter = client, gate, clock, jitter
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="svc-call")

    def run(self, calls: Sequence[Call], deadline: Deadline) -> list[Outcome]:
        """Carry out `calls` at the same time; the outcome of each, in their order.

        Raises `Timeout` when the deadline passes first, `QuotaSpent` where the gate does.
        """
        flights = [_Flight(call) for call in calls]
        landed: Landed = SimpleQueue()
        with deadline.interrupting(lambda: landed.put(None)):
            self._fly(flights, landed, deadline)
        return [flight.outcome for flight in flights if flight.outcome is not None]

    def close(self) -> None:
        """Let no further call start, and wait for those under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _fly(self, flights: Sequence[_Flight], landed: Landed, deadline: Deadline) -> None:
        """Start what is due and take in what landed, until every flight has its outcome."""
        grounded = list(flights)
        while True:
            deadline.check()
            grounded = [f for f in grounded if not self._start(f, deadline, landed)]
            if all(flight.outcome is not None for flight in flights):
                return
            wake_at = min([deadline.at, *(flight.start_at for flight in grounded)])
            try:
                arrival = landed.get(timeout=max(0.0, wake_at - self._clock()))
            except Empty:
                continue
            if arrival is None:
                continue  # cancelled
            flight, outcome = arrival
            if isinstance(outcome, CallError) and self._again(flight, outcome, deadline):
                grounded.append(flight)
            else:
                flight.outcome = outcome

    def _start(self, flight: _Flight, deadline: Deadline, landed: Landed) -> bool:
        """Start a flight that is due; False while it has to wait."""
        if flight.start_at > self._clock():
            return False
        if not flight.admitted:
            try:
                wait = self._gate.delay(flight.call.model.provider, deadline.left())
            except ENDING:
                raise
            except ApiError as error:
                flight.outcome = error
                return True
            flight.admitted = True
            if wait > 0:
                flight.start_at = self._clock() + wait
                return False
        flight.admitted = False
        self._threads.submit(self._attempt, flight, deadline, landed)
        return True

    def _attempt(self, flight: _Flight, deadline: Deadline, landed: Landed) -> None:
        left = deadline.left()
        if left <= 0:
            return  # who asked has gone
        call = flight.call
        outcome: Outcome
        try:
            outcome = self._client.call(
                call.model, call.content, left, call.key, deadline, flight.corrections
            )
        except CallError as error:
            outcome = error.with_traceback(None)  # whose frames would hold it, and it them
        except Exception:  # who asked must hear of it, or would wait for the whole deadline
            log.exception("a provider call failed in an unforeseen way")
            outcome = InternalError("something failed here while a model was asked")
        landed.put((flight, outcome))

    def _again(self, flight: _Flight, error: CallError, deadline: Deadline) -> bool:
        """Whether, and when, a failed flight is tried once more."""
        if not error.retry:
            return False
        if isinstance(error, ParameterRefused):
            flight.corrected += 1
            flight.start_at = 0.0
            return flight.corrected <= PARAMETER_RETRIES and _corrects(flight, error)
        pause = self._pause(flight.retries) if error.retry_after is None else error.retry_after
        flight.retries += 1
        flight.start_at = self._clock() + pause
        return flight.retries <= limits.CALL_RETRIES and pause < deadline.left()

    def _pause(self, retries: int) -> float:
        """Exponential backoff with full jitter on its upper half."""
        longest = min(limits.RETRY_CAP_S, limits.RETRY_BASE_S * 2.0**retries)
        return longest * (0.5 + 0.5 * self._jitter())


def _corrects(flight: _Flight, error: ParameterRefused) -> bool:
    """Correct a flight by what was refused; False where that was corrected before."""
    before = flight.corrections
    flight.corrections = before.plus(_correction(error), error.lasting)
    return flight.corrections.all != before.all


def _correction(error: ParameterRefused) -> Traits:
    if not isinstance(error, ParameterBounded):
        return Traits(refused=frozenset({error.parameter}))
    if error.parameter not in LIMITS:
        return Traits(top_logprobs=error.bound)
    return Traits(most_tokens=error.bound) if error.upper else Traits(least_tokens=error.bound)
