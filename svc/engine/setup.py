"""Fills in what a request leaves open, before any model is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from svc import limits
from svc.deadline import Deadline
from svc.engine import planned_calls
from svc.engine.ask import Ledger
from svc.engine.plans import CHAIN, Plan
from svc.learning import Knowledge
from svc.pins import LATEST, PINS, Pin
from svc.providers import Router
from svc.questions import Question
from svc.records import Model
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.terms import Mode, Privacy

Know = Callable[[str, Iterable[Question]], Knowledge]
KeyOf = Callable[[str], str | None]


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

    @property
    def strict(self) -> bool:
        return self.request.privacy is Privacy.STRICT


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

    def make(self, request: DecisionRequest, deadline: Deadline) -> Setup:
        """The setup of a request. Raises `ApiError` for one that cannot be carried out."""
        name = request.config or LATEST
        pin = PINS[self.latest if name == LATEST else name]
        named = request.config is not None
        plan = request.plan or Plan(CHAIN, (self.router.default(pin, named=named),))
        models = tuple(self.router.resolve(model_id) for model_id in plan.models)
        if request.privacy is Privacy.STRICT:
            for model in models:
                self.router.check_strict(model)
        debias = pin.debias if request.debias is None else request.debias
        planned_calls.check(request, len(models), 2 if debias else 1)
        project = request.project or DEFAULT_PROJECT
        aggregated = any(self.router.provider(model).aggregator for model in models)
        return Setup(
            request,
            project,
            pin,
            plan,
            models,
            mode=request.mode or pin.mode,
            debias=debias,
            deadline=deadline,
            knowledge=self.knowledge(project, request.questions.values()),
            ledger=Ledger(limits.MODEL_CALLS, len(models)),
            salt=self.salt,
            project_key=self.project_key(project) if aggregated else None,
        )
