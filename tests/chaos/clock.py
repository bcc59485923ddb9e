"""The wall clock of the server under test: it grows older by days, and jumps."""

from __future__ import annotations

import time
from pathlib import Path

from svc.store import ids
from tests.chaos.shifted import set_offset

DAY_S = 86_400.0

# What a jump may be away from the clock's own time, in seconds.
JUMPS_S = (-400 * DAY_S, -3 * DAY_S, -3_600.0, 3_600.0, 3 * DAY_S, 400 * DAY_S)

# One turn is beyond the farthest jump by more than a day, so that what was made before it is older
# than a day after it, whatever jumps there were.
TURN_S = max(JUMPS_S) + 2 * DAY_S


class Clock:
    """Lives through all lives of the server; the file is read by each of its processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turned_s = 0.0
        # How often it was shifted, how often away from its own time, and the latest time to which
        # it was.
        self.shifts, self.jumps, self.latest = 0, 0, 0.0
        self.shift(0.0)

    @property
    def now(self) -> float:
        """Its own time, without a jump, in unix seconds."""
        return time.time() + self._turned_s

    def shift(self, seconds: float) -> None:
        """Let it be wrong by so much from now on."""
        self.shifts += 1
        self.jumps += seconds != 0
        self.latest = max(self.latest, self.now + seconds)
        set_offset(self.path, self._turned_s + seconds)

    def turn(self) -> None:
        """Let so much time pass that a day is over, and a month."""
        self._turned_s += TURN_S
        self.shift(0.0)

    def is_old(self, decision_id: str) -> bool:
        """Whether a decision has been older than a day at some time so far."""
        ulid = ids.parse(decision_id)
        return ulid is not None and ulid < oldest_kept(self.latest)


def oldest_kept(now: float) -> bytes:
    """The lowest id of decisions that are younger than a day at that time, in unix seconds."""
    return ids.earliest(int((now - DAY_S) * 1000))
