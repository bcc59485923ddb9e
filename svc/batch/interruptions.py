"""Handles signals between two steps of the main thread, never inside one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """A block in which the handlers of SIGINT, SIGTERM and SIGHUP wait for the next `check`.

    A handler that raises wherever the main thread happens to be could leave a lock taken or a
    line uncounted. The second signal does not wait, because its sender has waited enough.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` ends a wait of the main thread; it is called inside a signal handler."""
        self._wake = wake
        self._pending: int | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if callable(handler := signal.getsignal(number)):
                self._handlers[number] = handler
                signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Call the handler of a signal that came, if one did; raises what the handler raises."""
        if self._pending is not None:
            self._handlers[self._pending](self._pending, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._pending is not None:
            self._handlers[number](number, frame)
        self._pending = number
        self._wake()
