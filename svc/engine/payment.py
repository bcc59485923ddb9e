"""Calls that are paid from budgets: what they may cost is reserved before, and settled after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from svc.engine.calls import Call, Outcome, PayAgain
from svc.errors import InvalidRequest, SvcError
from svc.phrases import quoted
from svc.providers import Provider, Router, charged_usd, most_usd, price_before, price_variable
from svc.records import Model
from svc.spending import Purse, Settle


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
    run: Callable[[PayAgain], Sequence[Outcome]],
    calls: Sequence[Call],
    purse: Purse,
    provider: Provider,
) -> Sequence[Outcome]:
    """The outcomes of calls to one provider, which cost what they are charged.

    Calls that were cut off count with what they may cost at most, and so do attempts whose replies
    broke. Raises what `run` and `Purse.reserve` raise.
    """
    most = [_most_usd(provider, call) for call in calls]
    dollars = math.fsum(most)
    settle, further = purse.reserve(dollars), _FurtherAttempts(purse, provider)
    try:
        outcomes = run(further.pay)
        charged = math.fsum(
            charged_usd(provider, call.model.name, outcome, one)
            for call, outcome, one in zip(calls, outcomes, most, strict=True)
        )
        dollars = charged - further.dollars
    finally:
        further.settle()
        settle(dollars)
    return outcomes


class _FurtherAttempts:
    """Pays attempts at calls that were made before and whose replies broke."""

    def __init__(self, purse: Purse, provider: Provider) -> None:
        self._purse, self._provider = purse, provider
        self._paid: list[tuple[Settle, float]] = []

    @property
    def dollars(self) -> float:
        return math.fsum(dollars for _, dollars in self._paid)

    def pay(self, call: Call) -> bool:
        """Reserve what a call may cost once more; False where a budget has no room for that."""
        dollars = _most_usd(self._provider, call)
        try:
            self._paid.append((self._purse.reserve(dollars), dollars))
        except SvcError:
            # The call fails with the reply that broke.
            return False
        return True

    def settle(self) -> None:
        """Nobody knows what those before them cost, so that one of each is charged whole."""
        for settle, dollars in self._paid:
            settle(dollars)


def _most_usd(provider: Provider, call: Call) -> float:
    return most_usd(provider, call.model.name, call.content) or 0.0
