"""The progress of a run: a bar on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from svc.phrases import printable

# The time between two updates.
TERMINAL_S, PLAIN_S = 0.1, 10.0
# A shorter wait for a rate limit is not told.
WAIT_S = 0.5
# The length of the bar in characters.
_BAR = 20
# The assumed width where a terminal does not tell its own.
_WIDTH = 80
# A narrower terminal has no space for a bar beside the words.
_ROOM = 50
_CLEAR = "\r\x1b[K"


class Progress:
    """Shows lines done, their rate, the cost so far and the time left; times in seconds."""

    def __init__(
        self,
        stream: TextIO,
        total: int | None,
        done: int,
        drawn: bool,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "lines",
        waiting: Callable[[], float] = lambda: 0.0,
        steady: bool = True,
    ) -> None:
        """`done` of the `total` units were there before; `drawn` shows a bar.

        `waiting` says how many seconds a rate limit still delays the work. Where it is not
        `steady`, its rate says nothing about the time left.
        """
        self._stream, self._total, self._before, self._drawn = stream, total, done, drawn
        self._clock, self._unit, self._waiting, self._steady = clock, unit, waiting, steady
        self._last = (done, 0, 0.0)
        self._started = clock()
        self._next = self._started + (0 if drawn else PLAIN_S)

    @property
    def seconds(self) -> float:
        return self._clock() - self._started

    def show(self, done: int, errors: int, cost_usd: float) -> None:
        """Show the counts, unless the last ones are still fresh."""
        self._last = (done, errors, cost_usd)
        self.refresh()

    def refresh(self) -> None:
        """Show the counts again, with the time that has passed."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + (TERMINAL_S if self._drawn else PLAIN_S)
        words = self._words(*self._last)
        if self._drawn:
            columns = _columns(self._stream)
            bar = self._bar(self._last[0]) if columns >= _ROOM else ""
            self._write(f"{_CLEAR}{bar}{words}"[: len(_CLEAR) + columns - 1])
        else:
            self._write(f"{words}\n")

    def tell(self, text: str) -> None:
        """Print a line of its own, above the bar."""
        self._write(f"{_CLEAR if self._drawn else ''}{printable(text)}\n")

    def end(self) -> None:
        """Leave an empty line behind on a terminal."""
        if self._drawn:
            self._write(_CLEAR)

    def _words(self, done: int, errors: int, cost_usd: float) -> str:
        rate = (done - self._before) / max(self.seconds, 1e-9)
        count = f"{done:,}" if self._total is None else f"{done:,} of {self._total:,}"
        rates = [rate_text(rate)] if self._steady else []
        parts = [f"{count} {self._unit}", *rates, f"${cost_usd:.4f}"]
        if self._total is not None and rate > 0 and self._steady:
            parts.append(f"{duration((self._total - done) / rate)} left")
        if errors:
            parts.append(f"{errors:,} errors")
        if self._waiting() >= WAIT_S:
            parts.insert(1, "waiting for a rate limit")
        return ", ".join(parts)

    def _bar(self, done: int) -> str:
        if not self._total:
            return ""
        full = min(_BAR, _BAR * done // self._total)
        return f"[{'#' * full}{'.' * (_BAR - full)}] {min(100, 100 * done // self._total):3d}%  "

    def _write(self, text: str) -> None:
        # The work matters more than its display.
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()


def duration(seconds: float) -> str:
    """`5 s`, `3 min 20 s` or `2 h 5 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def rate_text(rate: float) -> str:
    """Lines a second, or a minute where that is clearer."""
    return (
        f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.0f}/min"
    )


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except OSError:
        return _WIDTH
