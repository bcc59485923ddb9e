"""Calls that are paid from budgets: what they may cost is reserved before, and settled after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from svc.engine.calls import Bill, Call, Outcome
from svc.errors import ApiError, InvalidRequest
from svc.phrases import quoted
from svc.providers import (
    NO_CORRECTIONS,
    Corrections,
    ParameterRefused,
    Provider,
    ProviderError,
    Router,
    Traits,
    charged_usd,
    most_usd,
    price_before,
    price_variable,
)
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
    run: Callable[[Bill], Sequence[Outcome]],
    calls: Sequence[Call],
    purse: Purse,
    provider: Provider,
    traits: Callable[[str], Traits],
) -> Sequence[Outcome]:
    """The outcomes of calls to one provider, of which each attempt that was made is charged.

    Those that were cut off count with what they may cost at most. `traits` gives what is known of
    a model by its id. Raises what `run` and `Purse.reserve` raise.
    """
    bill = _Attempts(purse, provider, traits)
    bill.reserve(math.fsum(map(bill.most_usd, calls)))
    try:
        return run(bill)
    finally:
        bill.settle()


class _Attempts:
    """What the attempts at calls are charged, until all of it is settled."""

    def __init__(self, purse: Purse, provider: Provider, traits: Callable[[str], Traits]) -> None:
        self._purse, self._provider, self._traits = purse, provider, traits
        # What is not settled yet, and what was reserved for it.
        self._dollars = 0.0
        self._reserved: list[tuple[float, Settle]] = []
        # By the identity of a call: what its last attempt may cost at most.
        self._most: dict[int, float] = {}

    def most_usd(self, call: Call, corrections: Corrections = NO_CORRECTIONS) -> float:
        """What one attempt may cost at most."""
        name, traits = call.model.name, self._traits(call.model.id).corrected(corrections.all)
        return most_usd(self._provider, name, call.content, traits) or 0.0

    def reserve(self, dollars: float) -> None:
        """Reserve so much more. Raises what `Purse.reserve` raises."""
        self._reserved.append((dollars, self._purse.reserve(dollars)))

    def settle(self) -> None:
        """Exchange all that is reserved for what the attempts are charged."""
        *others, (_, settle_rest) = reversed(self._reserved)
        for reserved, settle in others:
            charged = min(reserved, self._dollars)
            settle(charged)
            self._dollars -= charged
        settle_rest(self._dollars)

    def leaves(self, call: Call, corrections: Corrections) -> None:
        """Count an attempt with the most, until it is known what it costs."""
        most = self._most[id(call)] = self.most_usd(call, corrections)
        self._dollars += most

    def ended(self, call: Call, outcome: Outcome) -> None:
        self._dollars += self._charged(call, outcome) - self._most[id(call)]

    def again(self, call: Call, failure: ProviderError, corrections: Corrections) -> Outcome | None:
        """Where an attempt may be charged, pay it at once, so that the next one has its room.

        An attempt that may cost more than the last one has what it lacks reserved. Where a budget
        has no room, the call ends as that attempt did, or with the budget's error if that attempt
        asked for too few tokens.
        """
        charged = self._charged(call, failure)
        try:
            if failure.may_be_charged:
                self._purse.reserve(charged)(charged)
                self._dollars -= charged
            if (lacks := self.most_usd(call, corrections) - self._most[id(call)]) > 0:
                self.reserve(lacks)
        except ApiError as error:
            return error if isinstance(failure, ParameterRefused) else failure
        return None

    def _charged(self, call: Call, outcome: Outcome) -> float:
        """What the last attempt at a call is charged."""
        return charged_usd(self._provider, call.model.name, outcome, self._most[id(call)])
