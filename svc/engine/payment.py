"""Calls that are paid from budgets: what they may cost is reserved before, and settled after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from svc.engine.calls import Bill, Call, Outcome
from svc.errors import InvalidRequest, SvcError
from svc.phrases import quoted
from svc.providers import (
    Provider,
    ProviderError,
    Router,
    charged_usd,
    most_usd,
    price_before,
    price_variable,
)
from svc.records import Model
from svc.spending import Purse


def check_prices(purse: Purse | None, router: Router, models: Iterable[Model]) -> None:
    """Raise `InvalidRequest` where a hard budget counts and nobody knows what calls will cost."""
    if purse is None or not purse.hard:
        return
    for model in models:
        provider = router.provider(model)
        if price_before(provider, model.name) is None:
            raise InvalidRequest(
                f"a budget bounds the cost of this request, and the price of {quoted(model.id)} is "
                f"not known; its operator can set {price_variable(provider)}"
            )


def paid(
    run: Callable[[Bill], Sequence[Outcome]],
    calls: Sequence[Call],
    purse: Purse,
    provider: Provider,
) -> Sequence[Outcome]:
    """The outcomes of calls to one provider, of which each attempt that was made is charged.

    Those that were cut off count with what they may cost at most. Raises what `run` and
    `Purse.reserve` raise.
    """
    bill = _Attempts(purse, provider)
    settle = purse.reserve(math.fsum(map(bill.most_usd, calls)))
    try:
        return run(bill)
    finally:
        settle(bill.dollars)


class _Attempts:
    """What the attempts at calls are charged, of which so many `dollars` are not settled yet."""

    def __init__(self, purse: Purse, provider: Provider) -> None:
        self._purse, self._provider = purse, provider
        self.dollars = 0.0

    def most_usd(self, call: Call) -> float:
        """What one attempt may cost at most."""
        return most_usd(self._provider, call.model.name, call.content) or 0.0

    def leaves(self, call: Call) -> None:
        """Count an attempt with the most, until it is known what it costs."""
        self.dollars += self.most_usd(call)

    def ended(self, call: Call, outcome: Outcome) -> None:
        most = self.most_usd(call)
        self.dollars += charged_usd(self._provider, call.model.name, outcome, most) - most

    def again(self, call: Call, failure: ProviderError) -> bool:
        """Where an attempt may be charged, pay it at once, so that the next one has its room.

        False where a budget has no room for both: the call then fails as that attempt did.
        """
        if not failure.may_be_charged:
            return True
        most = self.most_usd(call)
        try:
            settle = self._purse.reserve(most)
        except SvcError:
            return False
        settle(most)
        self.dollars -= most
        return True
