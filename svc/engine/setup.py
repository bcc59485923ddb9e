"""Fills in what a request leaves open, before any model is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from svc import limits
from svc.deadline import Deadline
from svc.engine import planned_calls
from svc.engine.ask import Ledger
from svc.engine.payment import check_prices
from svc.engine.plans import CHAIN, Plan
from svc.engine.prompt import Image
from svc.errors import ApiError, InvalidRequest
from svc.learning import Knowledge
from svc.pins import LATEST, PINS, Pin
from svc.providers import Router
from svc.questions import Question
from svc.records import Model
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.spending import PurseOf, nobody_pays
from svc.terms import Mode, Privacy

Know = Callable[[str, Iterable[Question], str | None], Knowledge]
KeyOf = Callable[[str], str | None]
# The id of the model that was promoted for a question of a request, None for no such.
Promoted = Callable[[DecisionRequest], str | None]
# How many calls it takes to ask a model once, in a mode.
CallsOf = Callable[[Model, DecisionRequest, Mode], int]


def nobody_promoted(_request: DecisionRequest) -> None:
    """Where every request that names no model is asked of the usual one."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What one decision is made with."""

    request: DecisionRequest
    project: str
    pin: Pin
    plan: Plan
    models: tuple[Model, ...]
    mode: Mode
    debias: bool | str
    deadline: Deadline
    knowledge: Knowledge
    ledger: Ledger
    salt: bytes = field(repr=False)
    project_key: str | None = field(repr=False)
    images: tuple[Image, ...] = field(default=(), repr=False)

    @property
    def strict(self) -> bool:
        return self.request.privacy is Privacy.STRICT


@dataclass(frozen=True, slots=True)
class Choice:
    """The config and the models that answer a request, and in which option orders.

    `calls` are those of a decision of which nothing is skipped or answered by a rule, in so many
    `orders` at most, without those of `explain`.
    """

    pin: Pin
    plan: Plan
    models: tuple[Model, ...]
    debias: bool | str
    orders: int
    calls: int


def chosen(
    router: Router,
    latest: str,
    request: DecisionRequest,
    promoted: Promoted = nobody_promoted,
) -> Choice:
    """What a request names, and the rest by the config, what was `promoted`, and the default model.

    `latest` is the config that `svc-latest` stands for. Raises `ApiError` for a request that
    cannot be carried out.
    """
    name = request.config or LATEST
    pin = PINS[latest if name == LATEST else name]
    plan = request.plan or Plan(CHAIN, (_usual(router, pin, request, promoted),))
    models = router.resolve_all(plan.models)
    if request.privacy is Privacy.STRICT:
        for model in models:
            router.check_strict(model)
    debias = pin.debias if request.debias is None else request.debias
    orders = planned_calls.orders_of(debias)
    calls = planned_calls.of_stages(request, len(models), orders)
    planned_calls.check(request, calls)
    planned_calls.check_options(request, len(models), orders)
    return Choice(pin, plan, models, debias, orders, calls)


def _usual(router: Router, pin: Pin, request: DecisionRequest, promoted: Promoted) -> str:
    """The model of a request that names none: the promoted one where it names no config either."""
    named = request.config is not None
    found = None if named else promoted(request)
    if found is not None and _allowed(router, found, request):
        return found
    return router.default(pin, named=named)


def _allowed(router: Router, model_id: str, request: DecisionRequest) -> bool:
    """Whether a model may see the request: not every one may under `privacy: strict`."""
    if request.privacy is Privacy.STRICT:
        try:
            router.check_strict(router.resolve(model_id))
        except InvalidRequest:
            return False
    return True


@dataclass(frozen=True, slots=True)
class SetupMaker:
    """Fills in requests from their config, the server's default model and the project's labels.

    `latest` is the config that `svc-latest` stands for. `salt` goes into hashes and into the mark
    around a state. `project_key` gives a project's own key for the aggregator, and may raise
    `ApiError`.
    """

    router: Router
    latest: str
    knowledge: Know
    salt: bytes = field(repr=False)
    project_key: KeyOf
    purse_of: PurseOf = nobody_pays
    promoted: Promoted = nobody_promoted

    def make(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        job: int | None = None,
    ) -> Setup:
        """The setup of a request with the key of that id, as a row of a job where it is one.

        Raises `ApiError` for one that cannot be carried out.
        """
        choice = self.chosen(request)
        project = request.project or DEFAULT_PROJECT
        purse = self.purse_of(project, api_key, job)
        check_prices(purse, self.router, choice.models)
        models = min(len(choice.models), limits.COUNCIL[1])
        deadline.effort.share(models)
        aggregated = any(self.router.provider(model).aggregator for model in choice.models)
        return Setup(
            request,
            project,
            choice.pin,
            choice.plan,
            choice.models,
            mode=request.mode or choice.pin.mode,
            debias=choice.debias,
            deadline=deadline,
            knowledge=self.knowledge(project, request.questions.values(), api_key),
            ledger=Ledger(limits.MODEL_CALLS, len(choice.models), purse, api_key),
            salt=self.salt,
            project_key=self.project_key(project) if aggregated else None,
            images=tuple(Image(url, digest(self.salt, url)) for url in request.images),
        )

    def at_once(
        self, request: DecisionRequest, wanted: int, share: float, calls_of: CallsOf
    ) -> int:
        """See `Engine.at_once`; `calls_of` says how many calls it takes to ask a model once."""
        try:
            choice = self.chosen(request)
        except ApiError:
            return wanted
        mode = request.mode or choice.pin.mode
        return planned_calls.at_once(
            request,
            choice.models,
            choice.orders,
            self.router.provider,
            wanted,
            share,
            lambda model: calls_of(model, request, mode),
        )

    def chosen(self, request: DecisionRequest) -> Choice:
        """See `chosen`, with the router and what was promoted here."""
        return chosen(self.router, self.latest, request, self.promoted)


def digest(salt: bytes, text: str) -> bytes:
    """What is stored of a state or an image: it tells whether two are equal, and nothing else."""
    return hashlib.sha256(salt + text.encode()).digest()
