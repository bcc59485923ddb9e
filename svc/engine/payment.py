"""Calls that are paid from budgets: what they may cost is reserved before, and settled after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from svc.engine.calls import Call, Outcome
from svc.errors import InvalidRequest
from svc.phrases import quoted
from svc.providers import Provider, Router, charged_usd, most_usd, price_before, price_variable
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
    run: Callable[[], Sequence[Outcome]], calls: Sequence[Call], purse: Purse, provider: Provider
) -> Sequence[Outcome]:
    """The outcomes of calls to one provider, which cost what they are charged.

    Calls that were cut off count with what they may cost at most. Raises what `run` and
    `Purse.reserve` raise.
    """
    most = [most_usd(provider, call.model.name, call.content) or 0.0 for call in calls]
    dollars = math.fsum(most)
    settle = purse.reserve(dollars)
    try:
        outcomes = run()
        dollars = math.fsum(
            charged_usd(provider, call.model.name, outcome, one)
            for call, outcome, one in zip(calls, outcomes, most, strict=True)
        )
    finally:
        settle(dollars)
    return outcomes
