"""Build every service from settings, and stop them in order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from svc import limits
from svc.engine.ask import Asked, Asker
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool
from svc.engine.debias import DebiasMemory
from svc.engine.decide import Engine
from svc.engine.flows import FlowPool
from svc.engine.knowledge import Library
from svc.engine.learner import Learner
from svc.engine.reports import Reporter
from svc.metrics import Board, Metrics
from svc.pins import PINS
from svc.providers.admission import Admission
from svc.providers.catalog import build_catalog
from svc.providers.client import Client
from svc.providers.routing import Router
from svc.providers.traits import TraitMemory
from svc.ratelimit import Buckets
from svc.settings import Settings
from svc.sharing import FairLock, WorkerLoads
from svc.store.budget import CallBudget
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.keys import Keys
from svc.store.labels import Labels
from svc.store.project_keys import ProjectKeys
from svc.store.weeks import Weeks
from svc.store.wordings import Wordings
from svc.usage import UsageBoard

log = logging.getLogger(__name__)


class Shared:
    """What the processes of one server have in common; made before they are forked."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.traits = TraitMemory()
        self.write_lock = FairLock()
        self.board = Board()
        self.usage = UsageBoard()
        self.worker_loads = WorkerLoads()

    def close(self) -> None:
        """Let go of it in this process."""
        self.worker_loads.close()
        self.usage.close()
        self.board.close()
        self.write_lock.close()
        self.traits.close()
        self.buckets.close()


@dataclass(frozen=True, slots=True)
class Services:
    """What the application works with; made in the process that serves, after the fork."""

    settings: Settings
    shared: Shared
    database: Database
    decisions: Decisions
    keys: Keys
    learner: Learner
    reporter: Reporter
    engine: Engine
    flows: FlowPool
    calls: CallPool
    client: Client
    metrics: Metrics

    def close(self) -> None:
        """Stop in order: the calls under way, what waits on them, the writer with its queue."""
        self.client.close()
        self.calls.close()
        self.flows.close()
        self.learner.close()
        self.database.close()
        self.shared.close()


def build(settings: Settings, shared: Shared | None = None) -> Services:
    """Start what `settings` ask for; without `shared` this process is the only one.

    Raises `SettingsError` for what cannot be used.
    """
    shared = shared or Shared()
    call_threads = limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD
    catalog = build_catalog(settings)
    database = Database.open(settings.db, turn=shared.write_lock)
    client = Client(catalog, call_threads, traits=shared.traits)
    budget = CallBudget(database)
    gate = Admission(catalog, settings.daily_limit, budget.take, shared.buckets)
    calls = CallPool(client, gate, call_threads)
    flows = FlowPool(limits.REQUEST_THREADS)
    asker = _asker(settings, shared, client, calls)
    decisions, labels, wordings = Decisions(database), Labels(database), Wordings(database)
    router = Router(catalog, settings.model, client.list_models)
    if trouble := router.trouble(PINS[settings.latest_config]):
        log.warning("requests that name no model will be refused: %s", trouble)
    engine = Engine(
        router,
        asker,
        flows,
        decisions,
        database.salt,
        settings.latest_config,
        Library(labels).knowledge,
        project_key=ProjectKeys(database, settings.master_key).get,
    )
    return Services(
        settings=settings,
        shared=shared,
        database=database,
        decisions=decisions,
        keys=Keys(database),
        learner=Learner(decisions, wordings, labels),
        reporter=Reporter(wordings, labels, Weeks(database)),
        engine=engine,
        flows=flows,
        calls=calls,
        client=client,
        metrics=Metrics(
            shared.board, _quota(budget, settings.daily_limit), models=shared.usage.sums
        ),
    )


def _asker(settings: Settings, shared: Shared, client: Client, calls: CallPool) -> Asker:
    cache: DecisionCache[Asked] = DecisionCache(settings.cache_size)
    return Asker(client, calls, cache, DebiasMemory(), shared.usage.open())


def _quota(budget: CallBudget, limit: int | None) -> Callable[[], int] | None:
    """Reads how many calls today's budget still holds."""
    if limit is None:
        return None
    return lambda: max(0, limit - budget.spent(datetime.now(UTC).date().isoformat()))
