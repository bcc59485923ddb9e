"""Build every service from settings, and stop them in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from svc import limits, telemetry
from svc.deadline import Deadline
from svc.engine.ask import Asker
from svc.engine.batched import BatchPlanner
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool, Calls
from svc.engine.challenges import THREADS, Challenges, promoted_by
from svc.engine.debias import BothOrders, DebiasMemory
from svc.engine.decide import Engine, Journal
from svc.engine.plans import ModelResult
from svc.engine.replay import ReplayedCalls
from svc.engine.setup import KeyOf, Know, Promoted, nobody_promoted
from svc.engine.traced import TracedClient, TracedEngine
from svc.flows import FlowPool, FlowsInTurn
from svc.learning import (
    Knowledge,
    Learner,
    Library,
    RateReporter,
    Reporter,
    ReviewDesk,
    Reviewers,
    nothing_known,
)
from svc.metrics import Board, BudgetSeries, Metrics
from svc.pins import PINS
from svc.providers import (
    Admission,
    Client,
    Provider,
    ReplayClient,
    Replies,
    Router,
    TraitMemory,
    Traits,
    build_catalog,
    exposed_keys,
)
from svc.questions import Question
from svc.ratelimit import Buckets, HalfOf, InTurn, Pauses
from svc.records import Decision
from svc.schemas import DecisionRequest
from svc.settings import Settings
from svc.sharing import Bell, FairLock, NamedLocks, WorkerLoads
from svc.spending import PurseOf, Purses, Slices, nobody_pays
from svc.store import (
    NANO,
    Activity,
    ApiKeys,
    Budgets,
    CallBudget,
    Challengers,
    Database,
    Eras,
    Jobs,
    Judgements,
    KeptAnswers,
    Labels,
    Periods,
    ProjectKeys,
    ProjectSizes,
    QuestionVersions,
    ReviewQueue,
    ServedFile,
    Spool,
    StorageError,
    Weeks,
)
from svc.store.decisions import Decisions
from svc.tracing import Traces
from svc.turns import Turns
from svc.usage import Usage, UsageBoard

# How long the database has to take a write, where somebody asks whether it does.
WRITE_CHECK_S = 1.0

# How many groups of questions of a decision are asked at a time of a challenger.
CALLS_AT_ONCE = 4

log = logging.getLogger(__name__)


class SharedCalls:
    """What processes that ask models share; made before they are forked."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.pauses = Pauses()
        self.traits = TraitMemory()

    def close(self) -> None:
        """Release it in this process."""
        self.traits.close()
        self.pauses.close()
        self.buckets.close()


class Shared(SharedCalls):
    """What the processes of one server share; made before they are forked."""

    def __init__(self) -> None:
        super().__init__()
        self.write_lock = FairLock()
        self.file = ServedFile()
        self.board = Board()
        self.usage = UsageBoard()
        self.worker_loads = WorkerLoads()
        self.turns = Turns()
        self.repeats = NamedLocks()
        # Rung when a job comes.
        self.bell = Bell()

    def close(self) -> None:
        """Release it in this process."""
        self.bell.close()
        self.repeats.close()
        self.turns.close()
        self.worker_loads.close()
        self.usage.close()
        self.board.close()
        self.file.close()
        self.write_lock.close()
        super().close()


@dataclass(frozen=True, slots=True)
class Core:
    """The parts that make decisions, in a server and in a command alike."""

    catalog: Mapping[str, Provider]
    client: Client
    calls: Calls
    flows: FlowPool
    router: Router
    asker: Asker
    engine: Engine

    def close(self) -> None:
        """Stop in order: the client first, which cuts off the calls under way."""
        self.client.close()
        self.calls.close()
        self.flows.close()


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the application; made in the process that serves, after the fork."""

    settings: Settings
    shared: Shared
    database: Database
    decisions: Decisions
    labels: Labels
    versions: QuestionVersions
    keys: ApiKeys
    learner: Learner
    reporter: Reporter
    rates: RateReporter
    activity: Activity
    review: ReviewDesk
    reviewers: Reviewers
    kept: KeptAnswers
    jobs: Jobs
    spool: Spool
    budgets: Budgets
    slices: Slices
    purses: Purses
    challenges: Challenges
    promoted: Promoted
    core: Core
    metrics: Metrics
    traces: Traces | None

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Functions that say why the server could not do its work; empty where it can."""
        return self._not_writable, self._without_provider

    def _not_writable(self) -> str:
        try:
            self.database.check_writable(WRITE_CHECK_S)
        except StorageError:
            return "the database takes no writes; the log says more"
        return ""

    def _without_provider(self) -> str:
        """Requests that name a model may use what the operator named."""
        usual = self.core.router.trouble(PINS[self.settings.latest_config])
        return "no provider is configured" if usual and not self.settings.providers else ""

    @property
    def batches(self) -> BatchPlanner:
        """Says who answers requests in batches."""
        settings = self.settings
        return BatchPlanner(
            self.core.router,
            settings.latest_config,
            settings.daily_limit,
            self.purses.of,
            self.promoted,
        )

    def replaying(self, replies: Replies, known: Mapping[str, Traits]) -> Core:
        """The engine that reads replies of models from `replies`, see `assemble_replay`."""
        return assemble_replay(
            self.settings,
            replies,
            known,
            journal=self.decisions,
            salt=self.database.salt,
            knowledge=_with_room(ProjectSizes(self.database), Library(self.labels).knowledge),
        )

    def close(self) -> None:
        """Stop in order: the calls under way, what waits for them, what they did not spend of
        budgets, the writer with its queue, the last spans.
        """
        self.challenges.close()
        self.core.close()
        self.slices.close()
        self.learner.close()
        self.database.close()
        if self.traces is not None:
            self.traces.close()
        self.shared.close()


def assemble(
    settings: Settings,
    shared: SharedCalls,
    *,
    take: Callable[[str, int], bool],
    journal: Journal,
    salt: bytes,
    flow_threads: int,
    call_threads: int,
    usage: Usage | None = None,
    knowledge: Know = nothing_known,
    project_key: KeyOf = lambda _project: None,
    purse_of: PurseOf = nobody_pays,
    era: Callable[[str], str] = lambda _project: "",
    promoted: Promoted = nobody_promoted,
    gives_way: bool = False,
    traced: bool = False,
) -> Core:
    """The engine and the parts it needs to ask models, for a server and for a command alike.

    `take` counts a call against the daily limit, see `Admission`. The other arguments go to the
    parts that have an argument of this name. Who `gives_way` leaves half of each provider's rate to
    others. Where it is `traced`, decisions and calls go into the traces of their deadlines. Raises
    `SettingsError` for settings that cannot be used.
    """
    catalog = build_catalog(settings)
    for name, variable in exposed_keys(settings, catalog):
        log.warning(
            "the key of provider %s, from %s, goes to another machine over plain http, where "
            "anybody on the way can read it: give it an https:// URL",
            name,
            variable,
        )
    client = Client(catalog, call_threads, traits=shared.traits)
    slots = HalfOf(shared.buckets) if gives_way else shared.buckets
    turns = None if gives_way else InTurn(shared.buckets)
    gate = Admission(catalog, settings.daily_limit, take, slots, turns=turns)
    asked = TracedClient(client) if traced else client
    calls = CallPool(asked, gate, call_threads, paused=shared.pauses.note)
    flows = FlowPool(flow_threads)
    router = Router(catalog, settings.model, client.list_models)
    cache: DecisionCache[ModelResult] = DecisionCache(
        settings.cache_size, ModelResult.size, limits.CACHED_PROBABILITIES
    )
    asker = Asker(client, calls, cache, DebiasMemory(), usage, era)
    latest = settings.latest_config
    kind = TracedEngine if traced else Engine
    engine = kind(
        router, asker, flows, journal, salt, latest, knowledge, project_key, purse_of, promoted
    )
    return Core(catalog, client, calls, flows, router, asker, engine)


def assemble_replay(
    settings: Settings,
    replies: Replies,
    known: Mapping[str, Traits],
    *,
    journal: Journal,
    salt: bytes,
    knowledge: Know = nothing_known,
) -> Core:
    """The engine where replies of models come from `replies`, for decisions made in one thread.

    It learns nothing from one decision to the next, and remembers none: made again, a decision
    asks for the same replies. `known` are the traits of models, see `ReplayClient`. Raises
    `SettingsError`.
    """
    catalog = build_catalog(settings)
    client = ReplayClient(catalog, replies, known)
    calls, flows = ReplayedCalls(client), FlowsInTurn()
    router = Router(catalog, settings.model, client.list_models)
    cache: DecisionCache[ModelResult] = DecisionCache(0)
    asker = Asker(client, calls, cache, BothOrders())
    engine = Engine(router, asker, flows, journal, salt, settings.latest_config, knowledge)
    return Core(catalog, client, calls, flows, router, asker, engine)


class _Beside:
    """The engine that asks challengers: in threads and over connections of its own.

    It stores nothing and remembers no answers, of which neither cost nor time would be known.
    """

    def __init__(
        self,
        settings: Settings,
        shared: SharedCalls,
        catalog: Mapping[str, Provider],
        gate: Admission,
        usage: Usage,
        with_: tuple[bytes, Know, KeyOf, PurseOf],
    ) -> None:
        """The last are those that an `Engine` takes behind its journal."""
        threads = THREADS * limits.CALLS_PER_REQUEST_THREAD * CALLS_AT_ONCE
        client = Client(catalog, threads, traits=shared.traits)
        calls, flows = CallPool(client, gate, threads), FlowPool(threads)
        router = Router(catalog, settings.model, client.list_models)
        cache: DecisionCache[ModelResult] = DecisionCache(0)
        asker = Asker(client, calls, cache, DebiasMemory(), usage)
        salt, knowledge, project_key, purse_of = with_
        latest = settings.latest_config
        engine = Engine(
            router, asker, flows, _NoJournal(), salt, latest, knowledge, project_key, purse_of
        )
        self._core = Core(catalog, client, calls, flows, router, asker, engine)

    def decide(self, request: DecisionRequest, deadline: Deadline, caller: str) -> Decision:
        """A decision that is stored nowhere. Raises `ApiError`."""
        return self._core.engine.decide(request, deadline, caller)

    def cut(self) -> None:
        """End the calls under way."""
        self._core.close()


class _NoJournal:
    """Where decisions are not kept."""

    def add(self, decision: Decision) -> str:
        return ""

    def add_failure(self, project: str, model: str) -> None:
        """Challengers count in no sums of their project."""


def build(settings: Settings, shared: Shared | None = None, gives_way: bool = False) -> Services:
    """Start what `settings` configure; without `shared` this process is the only one.

    Who `gives_way` leaves half of each provider's rate to others.
    Raises `SettingsError` for settings that cannot be used.
    """
    shared = shared or Shared()
    database = Database.open(settings.db, turn=shared.write_lock, served=shared.file)
    decisions, labels, versions = Decisions(database), Labels(database), QuestionVersions(database)
    budget, judgements = CallBudget(database), Judgements(database)
    budgets = Budgets(database)
    slices = Slices(budgets.claim)
    purses = Purses(budgets.in_force, slices)
    traces = telemetry.start() if settings.traced else None
    challengers, sizes = Challengers(database), ProjectSizes(database)
    promoted, usage = partial(promoted_by, challengers), shared.usage.open()
    project_key = ProjectKeys(database, settings.master_key).get
    core = assemble(
        settings,
        shared,
        take=budget.take,
        journal=decisions,
        salt=database.salt,
        flow_threads=limits.REQUEST_THREADS,
        call_threads=limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD,
        usage=usage,
        knowledge=_with_room(sizes, Library(labels).knowledge),
        project_key=project_key,
        purse_of=purses.of,
        era=Eras(database).of,
        promoted=promoted,
        gives_way=gives_way,
        traced=traces is not None,
    )

    def beside() -> _Beside:
        return _Beside(
            settings,
            shared,
            core.catalog,
            Admission(core.catalog, settings.daily_limit, budget.take, HalfOf(shared.buckets)),
            usage,
            (database.salt, _with_room(sizes, nothing_known), project_key, purses.of_challenger),
        )

    if trouble := core.router.trouble(PINS[settings.latest_config]):
        log.warning("requests that name no model will be refused: %s", trouble)
    reporter = Reporter(versions, labels, Weeks(database))
    quota, jobs = _quota(budget, settings.daily_limit), Jobs(database)
    return Services(
        settings=settings,
        shared=shared,
        database=database,
        decisions=decisions,
        labels=labels,
        versions=versions,
        keys=ApiKeys(database),
        learner=Learner(decisions, versions, labels),
        reporter=reporter,
        rates=RateReporter(versions, labels, Periods(database)),
        activity=Activity(database),
        review=ReviewDesk(decisions, versions, reporter, ReviewQueue(database), judgements),
        reviewers=Reviewers(decisions, versions, judgements),
        kept=KeptAnswers(database),
        jobs=jobs,
        spool=Spool(database, settings.db, settings.master_key),
        budgets=budgets,
        slices=slices,
        purses=purses,
        challenges=Challenges(challengers, beside),
        promoted=promoted,
        core=core,
        metrics=Metrics(
            shared.board, quota, shared.usage.sums, jobs.backlog, partial(_series, budgets)
        ),
        traces=traces,
    )


def _with_room(sizes: ProjectSizes, know: Know) -> Know:
    """The same for projects that have room for a decision, before any model is paid."""

    def knowledge(project: str, questions: Iterable[Question]) -> Knowledge:
        sizes.check(project)
        return know(project, questions)

    return knowledge


def _series(budgets: Budgets) -> Iterable[BudgetSeries]:
    """The budgets as the metrics show them."""
    for state in budgets.states():
        budget = state.budget
        series = (budget.scope.value, budget.subject, budget.per.value)
        yield series, budget.limit / NANO, state.taken / NANO


def _quota(budget: CallBudget, limit: int | None) -> Callable[[], int] | None:
    """A function that reads how many calls today's budget still has, None without a limit."""
    if limit is None:
        return None
    return lambda: max(0, limit - budget.spent(datetime.now(UTC).date().isoformat()))
