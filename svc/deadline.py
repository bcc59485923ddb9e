"""How long a request may still take, passed on from its arrival to its last call."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

from svc import processor_time
from svc.errors import Timeout
from svc.limits import (
    MODEL_REPLIES_NAMED,
    REPLIES_KEPT,
    REPLIES_LINES,
    REPLIES_NAMED,
    REPLIES_PARTS,
    REPLIES_PROCESSOR_S,
    SENT_AGAIN_BYTES,
)
from svc.meter import Meter
from svc.tracing import Trace

_ROUNDING = 1e-12  # what parts that were taken from a sum may leave of it


class Allowance:
    """How much of something is left to a request, counted by all of its calls together."""

    __slots__ = ("_left", "_lock")

    def __init__(self, amount: int) -> None:
        self._left = amount
        self._lock = threading.Lock()

    def take(self, amount: int, kept: int = 0) -> bool:
        """Take so much; False, and nothing is taken, where it is not there.

        What is `kept` for others counts as not there.
        """
        with self._lock:
            if amount > max(0, self._left - kept):
                return False
            self._left -= amount
            return True


class ModelsAllowance:
    """How much of something is left to a request and to each of its models.

    A model that lies leaves enough for those that are asked after it.
    """

    __slots__ = ("_amount", "_each", "_left", "_lock", "_of")

    def __init__(self, amount: float, each: float | None = None) -> None:
        """No model has more than `each`, which by default is all of it."""
        self._amount = self._left = amount
        self._each = amount if each is None else each
        self._of: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def take(self, model: str, amount: float) -> bool:
        """Take so much for a model; False, and nothing is taken, where it is not there."""
        with self._lock:
            if amount > min(self._left, self._each - self._of[model]):
                return False
            self._left -= amount
            self._of[model] += amount
            return True

    def share(self, models: int) -> None:
        """Give each of so many models an equal part of it."""
        self._each = self._amount / models

    def use(self, model: str, amount: float) -> None:
        """Take what was used for a model, whether it was there or not.

        What a model uses beyond its part leaves the parts of others alone.
        """
        with self._lock:
            own = max(0.0, self._each - self._of[model])
            self._left -= min(amount, own)
            self._of[model] += amount

    def has_left(self, model: str) -> bool:
        """Whether a model may use any more."""
        return min(self._left, self._each - self._of.get(model, 0.0)) > _ROUNDING


class Effort:
    """How much may be read and sent again for a request, counted by all of its calls together.

    `parts` are what replies hold, `kept` the bytes that are kept of them, `named` the labels that
    those in JSON name, and `lines` those around what they hold, beyond the ones that are always
    read. `sent_again` are bytes of calls that failed. `replies_s` are the seconds of a processor
    that replies take, from when their calls were sent; once they are used up, short ones alone are
    read, and no call is made again.

    `caller` is whose calls they are, None for everybody. `worked_s` are the seconds of a processor
    that other threads than its own took for it, and `pause_s` gives the seconds for which its next
    call has to wait because of what it took. `noted` is called whenever such a thread is done, and
    `own_noted` in the request's own thread, once a part of its work is done.
    """

    __slots__ = (
        *("_lock", "caller", "kept", "lines", "named", "noted", "own_noted", "parts"),
        *("pause_s", "replies_s", "sent_again", "worked_s"),
    )

    def __init__(
        self,
        parts: ModelsAllowance | None = None,
        named: ModelsAllowance | None = None,
        replies_s: ModelsAllowance | None = None,
    ) -> None:
        self.parts = parts or ModelsAllowance(REPLIES_PARTS)
        self.named = named or ModelsAllowance(REPLIES_NAMED, MODEL_REPLIES_NAMED)
        self.replies_s = replies_s or ModelsAllowance(REPLIES_PROCESSOR_S)
        self.kept = ModelsAllowance(REPLIES_KEPT)
        self.lines, self.sent_again = Allowance(REPLIES_LINES), Allowance(SENT_AGAIN_BYTES)
        self._lock = threading.Lock()
        self.caller: str | None = None
        self.worked_s = 0.0
        self.pause_s: Callable[[], float] = lambda: 0.0
        self.noted: Callable[[], object] = lambda: None
        self.own_noted: Callable[[], object] = lambda: None

    def share(self, models: int) -> None:
        """Give each of so many models an equal part of what replies may hold, keep, and take."""
        self.parts.share(models)
        self.kept.share(models)
        self.replies_s.share(models)

    def meter(self, model: str) -> Meter:
        """What counts the processor time of this thread for a reply of a model."""
        return Meter(partial(self.replies_s.use, model), partial(self.replies_s.has_left, model))

    @contextlib.contextmanager
    def reading(
        self, model: str, processor: Callable[[], float] = processor_time.used_s
    ) -> Iterator[None]:
        """In the block the request's own thread reads a reply of a model."""
        began = processor()
        try:
            yield
        finally:
            self.replies_s.use(model, processor() - began)

    @contextlib.contextmanager
    def counted(self, processor: Callable[[], float] = processor_time.used_s) -> Iterator[None]:
        """What this thread, which is another than the request's, does in the block is for it."""
        began = processor()
        try:
            yield
        finally:
            with self._lock:
                self.worked_s += processor() - began
            self.noted()


class Deadline:
    """A time on the monotonic clock at which every wait for a request ends; it may end earlier.

    `effort` is what may be read for the request. `trace` is where spans of what is done for it go,
    `later` where those go of what is done once it is answered; None where nobody traces.
    """

    __slots__ = ("_cancelled", "_clock", "_lock", "_on_cancel", "at", "effort", "later", "trace")

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        effort: Effort | None = None,
        trace: Trace | None = None,
    ) -> None:
        self._clock = clock
        self.effort = effort or Effort()
        self.trace = trace
        self.later: Trace | None = None
        self.at = clock() + seconds
        self._cancelled = False
        self._on_cancel: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether nobody needs the result any more."""
        return self._cancelled

    def left(self) -> float:
        """Seconds left; not positive once it has passed or was cancelled."""
        return 0.0 if self._cancelled else self.at - self._clock()

    def check(self) -> None:
        """Raise `Timeout` once the deadline has passed."""
        if self.left() <= 0:
            raise Timeout("the request exceeded its deadline")

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the deadline is cancelled."""
        cancelled = threading.Event()
        with self.interrupting(cancelled.set):
            cancelled.wait(seconds)

    def branch(self) -> Deadline:
        """A deadline at the same time that can be cancelled on its own, and is with this one."""
        made = Deadline(self.left(), self._clock, self.effort, self.trace)
        self.call(made.cancel)
        return made

    def cancel(self) -> None:
        """End every wait under this deadline, because nobody needs the result any more."""
        with self._lock:
            self._cancelled = True
            callbacks = list(self._on_cancel)
        for callback in callbacks:
            callback()

    def call(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the deadline is cancelled, or now if it was before."""
        with self._lock:
            self._on_cancel.add(callback)
            cancelled = self._cancelled
        if cancelled:
            callback()

    @contextlib.contextmanager
    def interrupting(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` if the deadline is cancelled inside the block, or was before it."""
        try:
            self.call(callback)
            yield
        finally:
            with self._lock:
                self._on_cancel.discard(callback)
