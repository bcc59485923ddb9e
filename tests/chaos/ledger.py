"""What the provider charges: it alone knows which calls it answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

# Who pays stands before the model's name: callers of the project with a budget, or a challenger.
# Other calls are free.
PAID, RIVAL = "paid", "rival"

# Dollars of each call. By the price, in dollars per million tokens, no call of the load is expected
# to cost less than `COST`, and the dearest ones several times as much.
COST = 0.01
PRICE = "100,10"


class Ledger:
    """Adds up what each payer was charged; written by the threads of the provider."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def charge(self, payer: str) -> None:
        """Note one call that is answered, well or not."""
        with self._lock:
            self._calls[payer] += 1

    def usd(self, payer: str) -> float:
        """Dollars that a payer was charged so far."""
        with self._lock:
            return self._calls[payer] * COST


def priced(good: Mapping[str, Any]) -> dict[str, Any]:
    """A completion that says what it cost."""
    return {**good, "usage": {**good["usage"], "cost": COST}}
