"""The engine in process, for commands that need no server.

Nothing is stored, no calibrator is in effect, and `SVC_DAILY_LIMIT` counts the calls of this
process alone. A database is opened only where its budgets in dollars are to count.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from svc import limits, logs
from svc.deadline import Deadline
from svc.demo import DemoServer
from svc.engine import planned_calls
from svc.engine.ask import Ledger, ModelRequest
from svc.engine.assembly import (
    Core,
    SharedCalls,
    Surroundings,
    assemble,
    assemble_replay,
    warn_of_exposed_keys,
)
from svc.engine.forecast import Forecaster, forecaster
from svc.engine.payment import check_prices
from svc.engine.plans import ModelResult, Plan
from svc.engine.prompt import PromptInput
from svc.errors import InvalidRequest, QuotaSpent, SettingsError
from svc.jsontext import JsonObject
from svc.pins import PINS
from svc.providers import Replies, Traits
from svc.questions import Question
from svc.records import Decision, Model
from svc.schemas import DEFAULT_PROJECT, DecisionRequest, PlanField
from svc.settings import ProviderOverride, Settings, load
from svc.spending import PurseOf, Purses, Slices, nobody_pays
from svc.store import Budgets, Database, ids
from svc.terms import Mode

DEMO_MODEL = "@demo/lexical"

# The level where SVC_LOG_LEVEL is not set, because failures are part of a command's output.
LOG_LEVEL = "error"

# The salt of the mark around a state. It is fixed, so that a repeated run shows its models the same
# prompts; nothing is stored here, and the mark is too long for a state to contain its own.
SALT = b"svc in process"

_DAY_S = 86_400

# What so many rows take by a sample of their states, as `POST /v1/forecast` answers it.
Forecast = Callable[[Sequence[Any], int], JsonObject]


class Ids:
    """A journal that stores nothing and only assigns ids."""

    def __init__(self) -> None:
        self._last: bytes | None = None
        self._lock = threading.Lock()

    def add(self, decision: Decision) -> str:
        """A new id, above all before it."""
        with self._lock:
            (self._last,) = ids.following(self._last, time.time_ns() // 1_000_000, 1)
            return ids.text(self._last)

    def add_failure(self, project: str, model: str) -> None:
        """Nobody counts them here."""


class RunBudget:
    """Counts the calls of each UTC day, in this process."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, day: str, limit: int) -> bool:
        """Count one call of `day`.

        Raises `QuotaSpent` when the limit is reached. An answer that lacks an option order or a
        model for want of calls would differ from that of a later run.
        """
        with self._lock:
            spent = self._spent.get(day, 0)
            if spent >= limit:
                left_s = _DAY_S - time.time() % _DAY_S
                raise QuotaSpent("the calls that SVC_DAILY_LIMIT allows one run are spent", left_s)
            self._spent[day] = spent + 1
        return True


@dataclass(frozen=True, slots=True)
class PaidBy:
    """The budgets of a project in the database file at `db`."""

    db: str
    project: str


class InProcess:
    """Makes decisions like a server with the same environment; used by any number of threads."""

    def __init__(self, core: Core, settings: Settings, purse_of: PurseOf = nobody_pays) -> None:
        self._purse_of = purse_of
        # The configured providers by name.
        self.catalog = core.catalog
        self.client = core.client
        # The pin that decisions are made under.
        self.config = settings.latest_config
        self.budgeted = settings.daily_limit is not None
        # The seconds between two looks after a batch at a provider.
        self.poll_s = settings.batch_poll_s
        self._router, self._asker, self._engine = core.router, core.asker, core.engine
        self._under_way: set[Deadline] = set()
        self._cut = False
        self._lock = threading.Lock()

    def settle(self, fields: Mapping[str, Any]) -> JsonObject:
        """The `fields` of a request with `model` filled in; the provider of every id is known.

        Raises `ApiError`, so that what is wrong with every request is found before the first.
        """
        settled = dict(fields)
        if "model" not in settled:
            settled["model"] = self._router.default(PINS[self.config], named=False)
        plan: Plan = PlanField().deserialize(settled["model"])
        for model_id in plan.models:
            self._router.resolve(model_id)
        return settled

    def check_prices(self, request: DecisionRequest) -> None:
        """Raise `InvalidRequest` where a budget counts and a model's price is not known."""
        purse = self._purse_of(DEFAULT_PROJECT, None, None)
        check_prices(purse, self._router, self._models_of(request))

    def at_once(self, request: DecisionRequest, wanted: int) -> int:
        """How many of the `wanted` decisions to make at once, so that rate limits delay none much.

        Raises `InvalidRequest` when one decision needs more calls than it may make.
        """
        orders = planned_calls.orders_of(request.debias or False)
        models = self._models_of(request)
        calls = planned_calls.of_stages(request, len(models), orders)
        if calls > limits.MODEL_CALLS:
            raise InvalidRequest(
                f"a line needs {calls} model calls, at most {limits.MODEL_CALLS} are allowed"
            )
        return planned_calls.at_once(request, models, orders, self._router.provider, wanted)

    def forecaster(self, request: DecisionRequest, batched: bool = False) -> Forecaster:
        """Who says what rows take that are asked alike, in batches or not. Raises `ApiError`."""
        return forecaster(self._router, self.config, request, batched)

    def decide(self, request: DecisionRequest) -> Decision:
        """The decision on a request.

        Raises `ApiError`. That is `QuotaSpent` when the daily budget did not suffice, even where
        an answer with fewer option orders or models would have been possible.
        """
        with self._deadline() as deadline:
            return self._engine.decide(request, deadline)

    def resolve(self, model_id: str) -> Model:
        """The model of an id. Raises `InvalidRequest`."""
        return self._router.resolve(model_id)

    def traits(self, model_id: str) -> Traits:
        """What was learned of a model by asking it."""
        return self.client.traits.in_project(model_id, DEFAULT_PROJECT)

    def ask(
        self, model: Model, questions: tuple[Question, ...], state: str, ledger: Ledger
    ) -> ModelResult:
        """Ask one model about a state in mode auto and both orders, outside any decision.

        Raises `ApiError`.
        """
        material = PromptInput(PINS[self.config], questions, state)
        request = ModelRequest(model, material, Mode.AUTO, True, DEFAULT_PROJECT, strict=False)
        with self._deadline() as deadline:
            return self._asker.ask(request, ledger, deadline)

    def cut(self) -> None:
        """End every decision under way, and those to come, with `Timeout`."""
        with self._lock:
            self._cut = True
            under_way = list(self._under_way)
        for deadline in under_way:
            deadline.cancel()

    def _models_of(self, request: DecisionRequest) -> list[Model]:
        """The models that a settled request names."""
        return [self._router.resolve(one) for one in (request.plan.models if request.plan else ())]

    @contextmanager
    def _deadline(self) -> Iterator[Deadline]:
        deadline = Deadline(limits.REQUEST_DEADLINE_S)
        with self._lock:
            self._under_way.add(deadline)
        if self._cut:
            deadline.cancel()
        try:
            yield deadline
        finally:
            with self._lock:
                self._under_way.discard(deadline)


def forecast_by(forecaster: Forecaster) -> Forecast:
    """What a forecaster says of a sample of states and the number of all."""

    def forecast(sample: Sequence[Any], rows: int) -> JsonObject:
        return asdict(forecaster.forecast(sample, rows, Deadline(limits.REQUEST_DEADLINE_S)))

    return forecast


@contextmanager
def engine(
    demo: bool,
    concurrency: int,
    shared: SharedCalls | None = None,
    paid_by: PaidBy | None = None,
) -> Iterator[InProcess]:
    """The engine by the environment's settings, for `concurrency` decisions at once.

    `shared` is what this process shares with others. Where a budget of `paid_by` is spent, the
    decision ends with `QuotaSpent`. Raises `SettingsError` for settings that
    cannot be used.
    """
    settings = _settings()
    with ExitStack() as stack:
        if demo:
            settings = with_demo(settings, stack.enter_context(DemoServer()).url)
        shared = shared or stack.enter_context(closing(SharedCalls()))
        purse_of = stack.enter_context(_purses(paid_by)) if paid_by else nobody_pays
        core = stack.enter_context(closing(_core(settings, concurrency, shared, purse_of)))
        yield InProcess(core, settings, purse_of)


@contextmanager
def replay(replies: Replies, known: Mapping[str, Traits]) -> Iterator[InProcess]:
    """The engine by the environment's settings, where replies of models come from `replies`.

    It is used by one thread; `known` are the traits of models by their ids. Raises
    `SettingsError`.
    """
    settings = _settings()
    around = Surroundings(journal=Ids(), salt=SALT)
    with closing(assemble_replay(settings, replies, known, around)) as core:
        yield InProcess(core, settings)


@contextmanager
def _purses(paid_by: PaidBy) -> Iterator[PurseOf]:
    """What pays every request of this process. Raises `SettingsError`."""
    if not Path(paid_by.db).exists():
        raise SettingsError(f"database {paid_by.db!r}: there is no such file")
    with closing(Database.open(paid_by.db)) as database:
        budgets = Budgets(database)
        with closing(Slices(budgets.claim)) as slices:
            purses = Purses(budgets.in_force, slices, ends=QuotaSpent)
            yield lambda *_: purses.of(paid_by.project, None)


def _settings() -> Settings:
    """The settings of the environment, by which the log is configured now."""
    settings = load(os.environ)
    level = settings.log_level if os.environ.get("SVC_LOG_LEVEL") else LOG_LEVEL
    logs.configure(settings.log == "json", level)
    return settings


def with_demo(settings: Settings, url: str) -> Settings:
    """The settings with the demonstration model's server at `url` as provider `demo`."""
    return replace(settings, providers={**settings.providers, "demo": ProviderOverride(url=url)})


def _core(settings: Settings, concurrency: int, shared: SharedCalls, purse_of: PurseOf) -> Core:
    flow_threads = concurrency * limits.COUNCIL[1]
    core = assemble(
        replace(settings, cache_size=0),
        shared,
        Surroundings(journal=Ids(), salt=SALT, purse_of=purse_of),
        take=RunBudget().take,
        flow_threads=flow_threads,
        call_threads=flow_threads * planned_calls.orders_of(True),
    )
    warn_of_exposed_keys(settings, core.catalog)
    return core
