"""A clock that goes only when a test moves it."""

from __future__ import annotations


class Clock:
    """Stands at `now`, in seconds, and passes for `time.time` and `time.monotonic`."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Be later by so many seconds at once: passes for `time.sleep`."""
        self.now += seconds
