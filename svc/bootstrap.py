"""Build every service from settings, and stop them in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from svc import limits, telemetry
from svc.engine.assembly import (
    Core,
    SharedCalls,
    Surroundings,
    assemble,
    assemble_replay,
    warn_of_exposed_keys,
)
from svc.engine.batched import BatchPlanner
from svc.engine.beside import beside
from svc.engine.challenges import Challenges, promoted_by
from svc.engine.decide import Engine
from svc.engine.setup import Know, Promoted, nobody_promoted
from svc.engine.traced import TracedEngine
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
from svc.providers import Replies, Traits
from svc.questions import Question
from svc.rests import Company, SharedRests, Work
from svc.settings import Settings
from svc.sharing import Bell, FairLock, NamedLocks, Resting, WorkerLoads
from svc.spending import Purses, Slices
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

log = logging.getLogger(__name__)


class Shared(SharedCalls):
    """What the processes of one server share; made before they are forked."""

    def __init__(
        self,
        line: telemetry.Line | None = None,
        request_threads: int = limits.REQUEST_THREADS,
    ) -> None:
        """`line` takes spans to the process that exports them; None where there is none.

        Each worker answers at most `request_threads` requests at the same time.
        """
        super().__init__()
        self.line, self.request_threads = line, request_threads
        self.write_lock = FairLock()
        self.file = ServedFile()
        self.board = Board()
        self.usage = UsageBoard()
        self.worker_loads = WorkerLoads()
        self.rests = {work: SharedRests(work.at_once) for work in Work}
        self.company = Company()
        self.turns = Turns(usual=max(1, request_threads // limits.KEY_SHARE))
        self.named_locks = NamedLocks()
        # Rung when a job comes.
        self.bell = Bell()

    def close(self) -> None:
        """Release it in this process."""
        if self.line is not None:
            self.line.close()
        self.bell.close()
        self.named_locks.close()
        self.turns.close()
        self.worker_loads.close()
        self.usage.close()
        self.board.close()
        self.file.close()
        self.write_lock.close()
        super().close()


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
        around = Surroundings(
            journal=self.decisions,
            salt=self.database.salt,
            knowledge=_with_room(ProjectSizes(self.database), Library(self.labels).knowledge),
        )
        return assemble_replay(self.settings, replies, known, around)

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


def build(settings: Settings, shared: Shared | None = None, gives_way: bool = False) -> Services:
    """Start what `settings` configure; without `shared` this process is the only one.

    Who `gives_way` leaves half of each provider's rate to others, and most of the time in which
    something is written.
    Raises `SettingsError` for settings that cannot be used.
    """
    shared = shared or Shared()
    turn = Resting(shared.write_lock) if gives_way else shared.write_lock
    database = Database.open(settings.db, turn=turn, served=shared.file)
    decisions, labels, versions = Decisions(database), Labels(database), QuestionVersions(database)
    budget, judgements = CallBudget(database), Judgements(database)
    budgets = Budgets(database)
    slices = Slices(budgets.claim)
    purses = Purses(budgets.in_force, slices)
    traces = telemetry.start(shared.line) if settings.traced else None
    challengers, sizes = Challengers(database), ProjectSizes(database)
    promoted, usage = partial(promoted_by, challengers), shared.usage.open()
    around = Surroundings(
        journal=decisions,
        salt=database.salt,
        knowledge=_with_room(sizes, Library(labels).knowledge),
        project_key=ProjectKeys(database, settings.master_key).get,
        purse_of=purses.of,
        promoted=promoted,
    )
    core = _engine(settings, shared, around, database, usage, gives_way, traces is not None)
    # Both sides of a comparison are judged by raw answers.
    raw = replace(
        around,
        knowledge=_with_room(sizes, nothing_known),
        purse_of=purses.of_challenger,
        promoted=nobody_promoted,
    )
    make = partial(beside, settings, shared, raw, budget.take, usage, traces is not None)
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
        challenges=Challenges(challengers, make),
        promoted=promoted,
        core=core,
        metrics=Metrics(
            shared.board, quota, shared.usage.sums, jobs.backlog, partial(_series, budgets)
        ),
        traces=traces,
    )


def _engine(
    settings: Settings,
    shared: Shared,
    around: Surroundings,
    database: Database,
    usage: Usage,
    gives_way: bool,
    traced: bool,
) -> Core:
    """What asks models for callers; of what may go wrong with these the log tells."""
    core = assemble(
        settings,
        shared,
        around,
        take=CallBudget(database).take,
        flow_threads=shared.request_threads,
        call_threads=shared.request_threads * limits.CALLS_PER_REQUEST_THREAD,
        usage=usage,
        era=Eras(database).of,
        gives_way=gives_way,
        traced=traced,
        kind=TracedEngine if traced else Engine,
    )
    warn_of_exposed_keys(settings, core.catalog)
    if trouble := core.router.trouble(PINS[settings.latest_config]):
        log.warning("requests that name no model will be refused: %s", trouble)
    return core


def _with_room(sizes: ProjectSizes, know: Know) -> Know:
    """The same for projects that have room for a decision, before any model is paid."""

    def knowledge(project: str, questions: Iterable[Question], caller: str | None) -> Knowledge:
        sizes.check(project)
        return know(project, questions, caller)

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
