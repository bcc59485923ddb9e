"""Which of several workers takes a new connection."""

from __future__ import annotations

import time
from collections.abc import Callable

# How long workers with fewer connections have to take a new one.
OFFER_S = 0.010


class ConnectionBalancer:
    """Leaves a new connection for a moment to the workers that have fewer.

    Every worker hears of a new connection; the first to come would often be the same one.
    """

    def __init__(
        self, least_of_others: Callable[[], int | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`least_of_others` tells how many connections the worker with the fewest of them has."""
        self._least_of_others = least_of_others
        self._clock = clock
        self._offered_until: float | None = None

    def offers(self, connections: int) -> bool:
        """Whether a worker of so many `connections` leaves the one that waits to another.

        Where it does, it has to look again soon. It never does so for longer than `OFFER_S`.
        """
        least = self._least_of_others()
        if least is not None and least < connections:
            now = self._clock()
            if self._offered_until is None:
                self._offered_until = now + OFFER_S
            if now < self._offered_until:
                return True
        self.forget()
        return False

    def forget(self) -> None:
        """The connection is taken; the next one is offered anew."""
        self._offered_until = None
