"""When a job may end, from how fast its rows were settled in the last minutes."""

from __future__ import annotations

from collections import deque

# How far back the rate looks, and how far apart its samples are, in seconds.
SPAN_S = 120.0
SAMPLED_EVERY_S = 5.0


class Pace:
    """Samples of how many rows are settled; times are in seconds, all on one clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, settled: int) -> None:
        """So many rows are settled now."""
        if not self._samples or now - self._samples[-1][0] >= SAMPLED_EVERY_S:
            self._samples.append((now, settled))
        while now - self._samples[0][0] > SPAN_S:
            self._samples.popleft()

    def left_s(self, now: float, settled: int, rows: int) -> float | None:
        """The seconds until all `rows` are settled; None while there is no rate."""
        if not self._samples:
            return None
        since, before = self._samples[0]
        if settled <= before or now <= since:
            return None
        return (rows - settled) * (now - since) / (settled - before)
