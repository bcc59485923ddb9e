"""Asks challengers the questions of live decisions, after their answers have left.

A decision waits for nothing here. What a challenger is to be asked goes into a short queue, which
threads of its own work through; where the queue is full it is dropped and counted. So a challenger
that is slow, hangs or fails costs live decisions nothing but processor time.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from svc import limits
from svc.deadline import Deadline, Effort
from svc.engine.challenged_request import challenged
from svc.errors import ApiError, DollarsSpent, InvalidRequest, ModelError, SvcError
from svc.records import Challenger, ChallengerAnswer, Decision, Source
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.shares import Shares
from svc.tracing import Trace

# In a process: how many decisions are asked of challengers at a time, how many wait for that, and
# how many bytes of memory all of these hold, since images are large. A project may have half of
# each.
THREADS = 4
WAITING = 64
HELD_BYTES = 32_000_000

# About the most bytes of memory that a character of JSON takes once it is parsed: the three of
# `{},` become an object of 64 bytes, and a reference to it.
PARSED = 24

# After what takes more of the processor than these seconds a thread rests so many times what is
# beyond them, and no longer than so many seconds: a reply of a challenger may be long.
UNNOTICED_S, REST, MOST_REST_S = 0.02, 15.0, 20.0

# How long, in seconds, a thread waits for something to do before it looks whether it is to end.
LOOK_S = 0.2

log = logging.getLogger(__name__)


class Decides(Protocol):
    """An engine that stores nothing; `cut` ends what it is doing."""

    def decide(self, request: DecisionRequest, deadline: Deadline, caller: str, /) -> Decision: ...
    def cut(self) -> None: ...


class Roster(Protocol):
    """Which challengers there are, and what is kept of them; nobody waits for what is kept."""

    def running(self, project: str) -> Sequence[Challenger]: ...
    def promoted(self, project: str) -> Sequence[Challenger]: ...
    def answered(self, answer: ChallengerAnswer) -> None: ...
    def count(self, challenger: int, dropped: int = 0, refused: int = 0) -> None: ...


class Task(NamedTuple):
    """The request of a decision, and the challenger that is to be asked the same.

    `size` is about how many bytes of memory it holds. Its spans go into `trace`, which is None
    where traces are off.
    """

    challenger: Challenger
    request: DecisionRequest
    decision_id: str
    size: int
    trace: Trace | None


class Challenges:
    """Offers decisions to their challengers; threads begin with the first that is taken."""

    def __init__(
        self,
        roster: Roster,
        make: Callable[[], Decides],
        threads: int = THREADS,
        waiting: int = WAITING,
        draw: Callable[[], float] = random.random,
        rest: Callable[[float], object] | None = None,
    ) -> None:
        """`make` makes the engine, once there is something to ask; `draw` gives 0 to 1.

        `rest` waits so many seconds; None for a wait that `close` ends.
        """
        self._roster, self._make, self._draw = roster, make, draw
        self._queue: deque[Task] = deque()
        self._busy, self._waiting, self._held = map(Shares, (threads, waiting, HELD_BYTES))
        self._making, self._lock = threading.Lock(), threading.Condition()
        self._threads: list[threading.Thread] = []
        self._most_threads = threads
        self._engine: Decides | None = None
        # Of the decisions that are under way.
        self._deadlines: set[Deadline] = set()
        self._closed = threading.Event()
        self._rest = rest or self._closed.wait

    def offer(
        self, request: DecisionRequest, decision: Decision, trace: Trace | None = None
    ) -> None:
        """Have a share of the decisions of challenged questions asked of the challenger.

        Answers of the cache and of rules tell nothing new about a model, and are left out, as are
        explained ones, whose cost and time are for more than the answer. Never waits, but for a
        look at which challengers there are, and never raises.
        """
        if decision.cached or request.explain or not decision.id:
            return
        try:
            for challenger in self._roster.running(decision.project):
                if _is_challenged(decision, challenger) and self._draw() < challenger.share:
                    size = _size(request, decision)
                    self._put(Task(challenger, request, decision.id, size, trace))
        except SvcError as error:
            log.error("no challenger was asked: %s", error.message)

    def close(self) -> None:
        """Cut what is being asked, leave out what waits, and stop; may be called again."""
        with self._lock:
            self._closed.set()
            threads, deadlines = self._threads, list(self._deadlines)
        for deadline in deadlines:
            # To cut the engine ends calls, but not the waits between them.
            deadline.cancel()
        with self._making:
            if self._engine is not None:
                self._engine.cut()
        for thread in threads:
            thread.join()

    def _put(self, task: Task) -> None:
        if not self._has_room(task):
            self._roster.count(task.challenger.id, dropped=1)
            return
        with self._lock:
            self._queue.append(task)
            self._lock.notify()
            if len(self._threads) < self._most_threads and not self._closed.is_set():
                name = f"svc-challenger-{len(self._threads)}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                with contextlib.suppress(RuntimeError):
                    # Where the system allows no further thread, the next task tries anew.
                    thread.start()
                    self._threads.append(thread)

    def _has_room(self, task: Task) -> bool:
        """Take a place in the queue and room for its bytes, where its project may have both."""
        return self._waiting.take_with(self._held, task.challenger.project, task.size)

    def _next(self) -> Task | None:
        """The task that waits longest of those whose project may have a thread."""
        with self._lock:
            if self._closed.is_set():
                return None
            for place, task in enumerate(self._queue):
                if self._busy.take(task.challenger.project):
                    del self._queue[place]
                    self._waiting.give_back(task.challenger.project)
                    return task
            self._lock.wait(LOOK_S)
        return None

    def _run(self) -> None:
        while not self._closed.is_set():
            task = self._next()
            if task is None:
                continue
            effort = Effort()
            try:
                with effort.counted():
                    self._ask(task, effort)
            except Exception:  # noqa: BLE001 - the thread has to survive a bug
                # The message is not logged, since it may hold input.
                if not self._closed.is_set():
                    log.error("a challenger could not be asked, which is a bug")
            project, size = task.challenger.project, task.size
            # Else the thread would hold the request in memory until its next task.
            del task
            self._held.give_back(project, size)
            if effort.worked_s > UNNOTICED_S:
                self._rest(min(REST * (effort.worked_s - UNNOTICED_S), MOST_REST_S))
            # The rest is in the project's share of threads.
            self._busy.give_back(project)

    def _ask(self, task: Task, effort: Effort) -> None:
        challenger = task.challenger
        if not self._is_running(challenger):
            return
        try:
            found = _answer(task, self._decide(task, effort))
        except (DollarsSpent, InvalidRequest):
            # A budget has no room, or its provider may not see the state or is not configured.
            self._roster.count(challenger.id, refused=1)
            return
        except ApiError as error:
            if self._closed.is_set():
                return
            found = ChallengerAnswer(challenger.id, task.decision_id, None, None, error=error.type)
        self._roster.answered(found)

    def _is_running(self, challenger: Challenger) -> bool:
        """Whether it still is. Its budget goes with it when it is removed."""
        try:
            running = self._roster.running(challenger.project)
        except SvcError as error:
            log.error("no challenger was asked: %s", error.message)
            return False
        return any(one.id == challenger.id for one in running)

    def _decide(self, task: Task, effort: Effort) -> Decision:
        request, caller = challenged(task.request, task.challenger), str(task.challenger.id)
        deadline = Deadline(limits.REQUEST_DEADLINE_S, effort=effort, trace=task.trace)
        with self._lock:
            self._deadlines.add(deadline)
            if self._closed.is_set():
                deadline.cancel()
        try:
            return self._ready().decide(request, deadline, caller)
        finally:
            with self._lock:
                self._deadlines.discard(deadline)

    def _ready(self) -> Decides:
        # A lock of its own: to make the engine takes longer than a live request may wait.
        with self._making:
            if self._engine is None:
                self._engine = self._make()
            return self._engine


def promoted_by(roster: Roster, request: DecisionRequest) -> str | None:
    """The model promoted for the first question of a request that has one. Raises `StorageError`.

    A model is promoted for the exact question that it was compared on.
    """
    found = roster.promoted(request.project or DEFAULT_PROJECT)
    models = {(one.key, one.digest): one.model for one in found}
    if not models:
        return None
    asked = ((key, question.digest) for key, question in request.questions.items())
    return next((models[exact] for exact in asked if exact in models), None)


def _size(request: DecisionRequest, decision: Decision) -> int:
    """About how many bytes of memory a request holds, with its images and all that was parsed."""
    definitions = sum(len(asked.definition) for asked in decision.questions)
    fields = len(request.state.text) if request.state.fields is not None else 0
    images = sum(map(len, request.images))
    # The bytes that were sent are kept beside the text.
    return 2 * images + 4 * len(request.state.text) + PARSED * (fields + definitions)


def _is_challenged(decision: Decision, challenger: Challenger) -> bool:
    """Whether a model answered the challenged question in that exact wording."""
    answer = decision.answers.get(challenger.key)
    return (
        answer is not None
        and answer.source is Source.MODELS
        and any(
            question.key == challenger.key and question.digest == challenger.digest
            for question in decision.questions
        )
    )


def _answer(task: Task, decision: Decision) -> ChallengerAnswer:
    """What there is to keep of a challenger's decision; never an extracted value where strict."""
    key, kept = task.challenger.key, decision.redacted() if decision.is_strict else decision
    (asked,) = [question for question in kept.questions if question.key == key]
    if asked.reading is None:
        raise ModelError("the challenger gave no answer")
    return ChallengerAnswer(
        task.challenger.id,
        task.decision_id,
        tuple(asked.reading["p"]),
        dict(kept.answers[key].fields),
        kept.cost_usd,
        kept.latency_ms,
        answered_by=asked.reading["by"],
    )
