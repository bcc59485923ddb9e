"""When a call may be made: the rate limit of each provider, and the aggregator's daily budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from svc.errors import BudgetSpent, NoSlotInTime
from svc.providers.catalog import Provider
from svc.ratelimit import Exceeded, InTurn


class Slots(Protocol):
    """Gives out the slots of rate limits, as `Buckets.reserve` does."""

    def reserve(self, name: str, per_minute: float, max_wait: float = 0.0) -> float: ...


class Admission:
    """Called once before every HTTP call, retries included."""

    def __init__(
        self,
        catalog: Mapping[str, Provider],
        daily_limit: int | None,
        take: Callable[[str, int], bool],
        slots: Slots,
        now: Callable[[], float] = time.time,
        turns: InTurn | None = None,
    ) -> None:
        """`take(day, limit)` counts one call of that UTC day, or is False when none is left.

        `now` is in seconds since the epoch. With `turns`, callers take turns at a provider's rate.
        """
        self._catalog = catalog
        self._daily_limit = daily_limit
        self._take = take
        self._slots, self._now, self._turns = slots, now, turns

    def line(self, provider: str, caller: str | None, max_wait: float, joined: bool) -> float:
        """Seconds until a call of the caller may ask for its `delay`, 0.0 for now.

        `joined` says that the call has asked before. Raises `NoSlotInTime` as `delay` does.
        """
        rpm = self._catalog[provider].rpm
        if rpm is None or caller is None or self._turns is None:
            return 0.0
        name, wait = _bucket(provider), 0.0
        if not joined:
            with _told():
                wait = self._turns.join(name, caller, rpm, max_wait)
        return wait or self._turns.ahead(name, caller, rpm)

    def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float:
        """Seconds to wait before the call may be made; its slot and its count are taken.

        Raises `NoSlotInTime` when that is more than `max_wait` seconds away.
        """
        wait = self._slot(provider, max_wait, caller)
        if self._daily_limit is not None and self._catalog[provider].aggregator:
            self._spend(self._daily_limit, datetime.fromtimestamp(self._now() + wait, UTC))
        return wait

    def _slot(self, provider: str, max_wait: float, caller: str | None) -> float:
        rpm = self._catalog[provider].rpm
        if rpm is None:
            return 0.0
        with _told():
            if self._turns is not None and caller is not None:
                return self._turns.reserve(_bucket(provider), caller, rpm, max_wait)
            return self._slots.reserve(_bucket(provider), rpm, max_wait)

    def _spend(self, limit: int, when: datetime) -> None:
        """Count the call on the day on which it is made."""
        if self._take(when.date().isoformat(), limit):
            return
        midnight = datetime(when.year, when.month, when.day, tzinfo=UTC) + timedelta(days=1)
        raise BudgetSpent("the daily budget of calls is spent", midnight.timestamp() - self._now())


def _bucket(provider: str) -> str:
    return f"provider {provider}"


@contextmanager
def _told() -> Iterator[None]:
    """Tell the caller where the next slot is too far away."""
    try:
        yield
    except Exceeded as error:
        raise NoSlotInTime(
            "the rate limit of the model's provider is reached", error.retry_after
        ) from None
