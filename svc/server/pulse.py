"""Signs of life of a process, in memory that it shares with the one that forked it."""

from __future__ import annotations

import mmap
import threading

# How often a process gives one, in seconds.
BEAT_S = 1.0


class Pulse:
    """Made by the one that looks, before it forks the other one."""

    def __init__(self) -> None:
        # A 64-bit number, which grows while the process lives.
        self._count = memoryview(mmap.mmap(-1, 8)).cast("q")
        self._seen = 0
        self._looked_at: float | None = None
        self._silent_s = 0.0

    def beat(self) -> None:
        """Have a thread of this process give signs of life until the process ends or is stopped."""
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def silent_s(self, now: float, look_s: float) -> float:
        """For how long there was no sign of life; `now` is in seconds.

        It counts at most `look_s` since the look before: whoever looks may have been stopped too.
        """
        since = now if self._looked_at is None else self._looked_at
        self._looked_at = now
        if self._count[0] != self._seen:
            self._seen, self._silent_s = self._count[0], 0.0
        else:
            self._silent_s += min(now - since, look_s)
        return self._silent_s

    def _beat(self) -> None:
        pause = threading.Event()
        while True:
            self._count[0] += 1
            pause.wait(BEAT_S)
