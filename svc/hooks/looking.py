"""When to look at what happened: every few seconds at a few rows, every minute at reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

# The longest pauses between two looks at what a few rows tell, and at reports, in seconds.
LOOK_EVERY_S = 2.0
CLOSE_LOOK_EVERY_S = 60.0

# A close look that the database failed, or that has left reports to compute, is repeated after so
# long: what happened is not to wait a minute for that, and to compute reports may take a second.
CLOSE_LOOK_AGAIN_S = 10.0


class Notices(Protocol):
    """Finds out what happened; see `Noticing`."""

    def look(self) -> None:
        """Look at a few rows. Raises `StorageError`."""

    def look_closely(self) -> bool:
        """Look at reports; False where some are left. Raises `StorageError`."""

    def tell(self) -> None:
        """Tell of what lasts. Raises `StorageError`."""


class Looking:
    """Looks whenever a pause is over."""

    def __init__(
        self,
        noticing: Notices,
        forget_old: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`forget_old` deletes settled events, after a close look; `clock` gives seconds."""
        self._noticing, self._forget_old, self._clock = noticing, forget_old, clock
        self._look_at = self._look_closely_at = clock()

    def look(self) -> None:
        """Look at what is due. Raises `StorageError`; then the same is due again."""
        now = self._clock()
        if now < self._look_at:
            return
        self._noticing.look()
        if now >= self._look_closely_at:
            self._look_closely(now)
        self._noticing.tell()
        self._look_at = now + LOOK_EVERY_S

    def _look_closely(self, now: float) -> None:
        self._look_closely_at = now + CLOSE_LOOK_AGAIN_S
        are_done = self._noticing.look_closely()
        self._forget_old()
        self._look_closely_at = now + (CLOSE_LOOK_EVERY_S if are_done else CLOSE_LOOK_AGAIN_S)
