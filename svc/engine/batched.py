"""Which providers answer a request in batches, where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from svc.engine.load import at_most, orders_of
from svc.engine.plans import Plan
from svc.errors import InvalidRequest
from svc.jsontext import JsonObject
from svc.pins import LATEST, PINS
from svc.providers import Provider, Router
from svc.schemas import DEFAULT_PROJECT, DecisionRequest, PlanField
from svc.spending import PurseOf, nobody_pays


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The full ids of the models of a request, their providers by name, and a decision's calls."""

    models: tuple[str, ...]
    providers: Mapping[str, Provider]
    calls: int


class BatchPlanner:
    """Says who answers the rows of a job in batches."""

    def __init__(
        self,
        router: Router,
        latest: str,
        daily_limit: int | None,
        purse_of: PurseOf = nobody_pays,
    ) -> None:
        """`latest` is the config that `svc-latest` stands for."""
        self._router, self._latest, self._daily_limit = router, latest, daily_limit
        self._purse_of = purse_of

    def settled(
        self, request: DecisionRequest, model: object = None, api_key: str | None = None
    ) -> JsonObject:
        """The config and the model that hold for all rows, whatever becomes of the settings.

        `model` is what the request has, if anything, and `api_key` the id of its key. Raises
        `InvalidRequest` where a provider has no Batch API, or a budget in dollars stands, and
        `ModelUnavailable`.
        """
        if self._purse_of(request.project or DEFAULT_PROJECT, api_key, None) is not None:
            raise InvalidRequest(
                "batch: the project or the API key has a budget in dollars, which does not count "
                "the calls of batches; hand the job in without batch"
            )
        name = request.config or LATEST
        config = self._latest if name == LATEST else name
        if model is None:
            model = self._router.default(PINS[config], named=request.config is not None)
        self.plan(request, PlanField().deserialize(model), config)
        return {"model": model, "config": config}

    def plan(self, request: DecisionRequest, plan: Plan, config: str) -> BatchPlan:
        """Who answers a request by a plan. Raises `InvalidRequest` as `settled` does."""
        models = [self._router.resolve(model_id) for model_id in plan.models]
        providers = {one.provider: self._router.provider(one) for one in models}
        for provider in providers.values():
            self._check(provider)
        calls = at_most(request, PINS[config], orders_of(request.debias)).calls
        return BatchPlan(tuple(one.id for one in models), providers, int(calls) * len(models))

    def _check(self, provider: Provider) -> None:
        if provider.no_batches:
            raise InvalidRequest(f"batch: {provider.no_batches}, on the server")
        if provider.aggregator and self._daily_limit is not None:
            raise InvalidRequest(
                f"batch: SVC_DAILY_LIMIT counts calls to provider {provider.name!r} one by one, "
                "and a batch is many at once; use another provider, or no batch"
            )
