"""The engine in process, for commands that need no server.

No database is opened: nothing is stored, no calibrator is in effect, and `SVC_DAILY_LIMIT` counts
the calls of this process alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from typing import Any

from svc import limits, logs
from svc.cli.demonstration import with_demo
from svc.deadline import Deadline
from svc.demo import DemoServer
from svc.engine import stages
from svc.engine.ask import Ask, Asked, Asker, Ledger
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool
from svc.engine.debias import DebiasMemory
from svc.engine.decide import Engine
from svc.engine.flows import FlowPool
from svc.engine.ladder import AUTO
from svc.engine.prompt import Material
from svc.errors import ApiError, InvalidRequest, QuotaSpent
from svc.pins import PINS
from svc.providers.admission import Admission
from svc.providers.catalog import Provider, build_catalog
from svc.providers.client import Client
from svc.providers.routing import Model, Router
from svc.providers.traits import TraitMemory
from svc.questions import Question
from svc.ratelimit import Buckets
from svc.schemas import DecisionRequest, Plan, load_decision
from svc.schemas.decision import DEFAULT_PROJECT
from svc.schemas.plan import PlanField
from svc.settings import Settings, load
from svc.store import ids
from svc.store.decisions import DecisionRecord

LOG_LEVEL = "error"  # unless SVC_LOG_LEVEL is set: failures are part of the output
# Of the mark around a state. Nothing is stored here, and a run that is made again is to show its
# models the same prompts; the mark is long enough that no state can hold its own.
SALT = b"svc in process"
_DAY_S = 86_400
_SPENT = "the calls that SVC_DAILY_LIMIT allows one run are spent"
_ORDERS = 2  # calls of one asking, debiased

_refused: ContextVar[list[str]] = ContextVar("calls of this decision that the budget refused")
_record: ContextVar[DecisionRecord] = ContextVar("the decision made last in this thread")


class Ids:
    """A journal that keeps nothing and gives out ids."""

    def __init__(self) -> None:
        self._last: bytes | None = None
        self._lock = threading.Lock()

    def add(self, record: DecisionRecord) -> str:
        """A new id, above all before it."""
        _record.set(record)
        with self._lock:
            (self._last,) = ids.following(self._last, time.time_ns() // 1_000_000, 1)
            return ids.text(self._last)


class Budget:
    """Counts the calls of each UTC day, in this process."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, day: str, limit: int) -> bool:
        """Count one call of `day`; False, and nothing counted, when it is spent."""
        with self._lock:
            spent = self._spent.get(day, 0)
            self._spent[day] = min(limit, spent + 1)
        if spent >= limit:
            _refused.get().append(day)
        return spent < limit


class Shared:
    """What the processes of one command have in common; made before they are forked."""

    def __init__(self) -> None:
        self.buckets, self.traits = Buckets(), TraitMemory()

    def close(self) -> None:
        """Let go of it in this process."""
        self.buckets.close()
        self.traits.close()


class Offline:
    """Makes decisions like a server with the same environment; used by any number of threads."""

    def __init__(
        self,
        catalog: Mapping[str, Provider],
        client: Client,
        router: Router,
        asker: Asker,
        engine: Engine,
        settings: Settings,
    ):
        self.catalog = catalog  # the configured providers by name
        self.client = client
        self.config = settings.latest_config  # the pin that decisions are made under
        self.budgeted = settings.daily_limit is not None
        self._router, self._asker, self._engine = router, asker, engine
        self._under_way: set[Deadline] = set()
        self._cut = False
        self._lock = threading.Lock()

    def settle(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """`fields` of a request with `model` filled in, every id of which can be asked.

        Raises `ApiError`: what would be wrong with every request is best found before the first.
        """
        settled = dict(fields)
        if "model" not in settled:
            settled["model"] = self._router.default(PINS[self.config], named=False)
        plan: Plan = PlanField().deserialize(settled["model"])
        for model_id in plan.models:
            self._router.resolve(model_id)
        return settled

    def at_once(self, request: DecisionRequest, wanted: int) -> int:
        """How many of the `wanted` decisions at once no rate limit keeps waiting for too long.

        The calls under way at a provider are at most those of a minute, half of a deadline.
        Raises `InvalidRequest` when a single one needs more calls than it may make.
        """
        orders = _ORDERS if request.debias else 1
        named = request.plan.models if request.plan else ()
        models = [self._router.resolve(model_id) for model_id in named]
        calls = stages.planned_calls(request, len(models), orders)
        if calls > limits.MODEL_CALLS:
            raise InvalidRequest(
                f"a line needs {calls} model calls, at most {limits.MODEL_CALLS} are allowed"
            )
        for provider in map(self._router.provider, models):
            if provider.rpm is not None:
                members = sum(model.provider == provider.name for model in models)
                calls = stages.planned_calls(request, members, orders)
                wanted = min(wanted, max(1, provider.rpm // max(1, calls)))
        return wanted

    def decide(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a body of `POST /v1/decide`.

        Raises `ApiError`; of these `QuotaSpent` when the daily budget did not suffice, also when
        there is an answer, which then lacks an option order or a model.
        """
        return self.answer(load_decision(dict(body)))

    def answer(self, request: DecisionRequest) -> dict[str, Any]:
        """The response to a request that is checked already; raises what `decide` does."""
        return self.recorded(request)[0]

    def recorded(self, request: DecisionRequest) -> tuple[dict[str, Any], DecisionRecord]:
        """The response with what a server would store; raises what `decide` does."""
        refused: list[str] = []
        token = _refused.set(refused)
        try:
            with self._deadline() as deadline:
                response = self._engine.decide(request, deadline).response
        except ApiError:
            if not refused:
                raise
        finally:
            _refused.reset(token)
        if refused:
            raise QuotaSpent(_SPENT, _DAY_S - time.time() % _DAY_S)
        return response, _record.get()

    def resolve(self, model_id: str) -> Model:
        """The model of an id. Raises `InvalidRequest`."""
        return self._router.resolve(model_id)

    def ask(
        self, model: Model, questions: tuple[Question, ...], state: str, ledger: Ledger
    ) -> Asked:
        """Ask one model about a state in mode auto and both orders, outside any decision.

        Raises `ApiError`.
        """
        material = Material(PINS[self.config], questions, state)
        wanted = Ask(model, material, AUTO, True, DEFAULT_PROJECT, strict=False)
        token = _refused.set([])
        try:
            with self._deadline() as deadline:
                return self._asker.ask(wanted, ledger, deadline)
        finally:
            _refused.reset(token)

    def cut(self) -> None:
        """End every decision under way, and those to come, with `Timeout`."""
        with self._lock:
            self._cut = True
            under_way = list(self._under_way)
        for deadline in under_way:
            deadline.cancel()

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


@contextmanager
def engine(demo: bool, concurrency: int, shared: Shared | None = None) -> Iterator[Offline]:
    """The engine by the environment's settings, for `concurrency` decisions at once.

    `shared` holds what is kept together with other processes. Raises `SettingsError` for what
    cannot be used.
    """
    settings = load(os.environ)
    level = settings.log_level if os.environ.get("SVC_LOG_LEVEL") else LOG_LEVEL
    logs.configure(settings.log == "json", level)
    with ExitStack() as stack:
        if demo:
            settings = with_demo(settings, stack.enter_context(DemoServer()).url)
        shared = shared or stack.enter_context(closing(Shared()))
        yield _build(settings, concurrency, shared, stack)


def _build(settings: Settings, concurrency: int, shared: Shared, stack: ExitStack) -> Offline:
    """Everything but the database; `stack` ends the threads in order."""
    flow_threads = concurrency * limits.COUNCIL[1]
    call_threads = flow_threads * _ORDERS
    catalog = build_catalog(settings)
    client = Client(catalog, call_threads, traits=shared.traits)
    gate = Admission(catalog, settings.daily_limit, Budget().take, shared.buckets)
    calls = CallPool(client, gate, call_threads)
    flows = FlowPool(flow_threads)
    for ended in (flows, calls, client):  # the client first: it cuts off what is under way
        stack.callback(ended.close)
    router = Router(catalog, settings.model, client.list_models)
    asker = Asker(client, calls, DecisionCache(0), DebiasMemory())
    made = Engine(router, asker, flows, Ids(), SALT, settings.latest_config)
    return Offline(catalog, client, router, asker, made, settings)
