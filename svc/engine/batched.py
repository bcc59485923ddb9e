"""Which providers answer a request in batches, where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from svc.engine.setup import Choice, Promoted, chosen, nobody_promoted
from svc.errors import InvalidRequest, NotConfigured
from svc.jsontext import JsonObject
from svc.providers import Provider, Router
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.spending import PurseOf, nobody_pays


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The full ids of the models of a request, and their providers by name."""

    models: tuple[str, ...]
    providers: Mapping[str, Provider]


class BatchPlanner:
    """Says who answers the rows of a job in batches."""

    def __init__(
        self,
        router: Router,
        latest: str,
        daily_limit: int | None,
        purse_of: PurseOf = nobody_pays,
        promoted: Promoted = nobody_promoted,
    ) -> None:
        """`latest` is the config that `svc-latest` stands for."""
        self._router, self._latest, self._daily_limit = router, latest, daily_limit
        self._purse_of, self._promoted = purse_of, promoted

    def settled(
        self, request: DecisionRequest, model: object = None, api_key: str | None = None
    ) -> JsonObject:
        """The config and the model that hold for all rows, whatever becomes of the settings.

        `model` is what the request has, if anything, and `api_key` the id of its key. Raises
        `InvalidRequest` where a provider has no Batch API, or a budget in dollars stands, and
        what `chosen` raises.
        """
        hindrance = self.hindrance(request.project or DEFAULT_PROJECT, api_key)
        if hindrance is not None:
            raise InvalidRequest(f"batch: {hindrance}; hand the job in without batch")
        choice = self._chosen(request)
        model = choice.plan.models[0] if model is None else model
        return {"model": model, "config": choice.pin.name}

    def hindrance(self, project: str, api_key: str | None) -> str | None:
        """Why no batch may be made for a project and the id of a key, None where one may.

        Raises `StorageError`.
        """
        if self._purse_of(project, api_key, None) is None:
            return None
        return (
            "the project or the API key has a budget in dollars, which does not count the calls "
            "of batches"
        )

    def plan(self, request: DecisionRequest) -> BatchPlan:
        """Who answers a request. Raises as `settled` does, but for budgets."""
        choice = self._chosen(request)
        providers = {one.provider: self._router.provider(one) for one in choice.models}
        return BatchPlan(tuple(one.id for one in choice.models), providers)

    def _chosen(self, request: DecisionRequest) -> Choice:
        choice = chosen(self._router, self._latest, request, self._promoted)
        for model in choice.models:
            self._check(self._router.provider(model))
        return choice

    def _check(self, provider: Provider) -> None:
        if provider.no_batches:
            raise NotConfigured(f"batch: {provider.no_batches}, on the server")
        if provider.aggregator and self._daily_limit is not None:
            raise NotConfigured(
                f"batch: SVC_DAILY_LIMIT counts calls to provider {provider.name!r} one by one, "
                "and a batch is many at once; use another provider, or no batch"
            )
