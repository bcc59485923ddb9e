"""The embedded database: the one place that holds SQL and knows `sqlite3`.

`database.py` is the door: `Database` opens the file, writes through one thread (`writer.py`) and
reads from a small pool (`readers.py`). Each further file keeps one kind of record on top of it.
"""

from __future__ import annotations

from svc.store.activity import (
    ANSWERED_DAYS,
    Activity,
    By,
    Spans,
    Sums,
)
from svc.store.budget import CallBudget
from svc.store.budgets import (
    NANO,
    Account,
    Budget,
    Budgets,
    BudgetState,
    Claim,
    Grant,
    Per,
    ReachedBudget,
    Scope,
)
from svc.store.challengers import AskedPair, ChallengerRecord, Challengers, ChallengerState
from svc.store.database import Database
from svc.store.eras import REMEMBERED_S, Eras
from svc.store.erasing import TOGETHER
from svc.store.errors import (
    ApiKeyRefused,
    ChallengerThere,
    ProjectFull,
    SpoolLost,
    StorageError,
    TooManyBudgets,
    TooManyHooks,
    TooManyJobs,
    TooManySums,
    UnknownDecision,
    UnknownJob,
    UnreadableKey,
    WriteTimedOut,
)
from svc.store.forgetting import Forgetting, Forgotten, Subject
from svc.store.hook_alarms import Alarm, HookAlarms
from svc.store.hook_alarms import Place as AlarmPlace
from svc.store.hook_events import DueEvent, EndedJob, HookEvents, NewEvent
from svc.store.hooks import PROMISE_KEPT, Hook, HookKind, Hooks, OpenedHook
from svc.store.job_results import RowResult
from svc.store.jobs import Job, JobPage, JobRow, Jobs, JobStatus, new_id
from svc.store.judgements import Judgement, Judgements
from svc.store.kept_answers import KeptAnswer, KeptAnswers
from svc.store.kept_names import KEPT_NAMES, NAME_CHARS, OTHERS
from svc.store.keys import PREFIX, ApiKey, ApiKeys
from svc.store.label_records import (
    CalibrationState,
    ChallengerLabel,
    GivenLabel,
    Members,
    NewerLabels,
    NewLabel,
    Place,
    RawReading,
    Stratum,
    TrainingData,
    WeighedLabel,
    Worth,
)
from svc.store.labels import Labels
from svc.store.opened_file import ServedFile
from svc.store.overview import Overview, ProjectOverview, QuestionOverview
from svc.store.periods import Period, Periods
from svc.store.project_keys import MASTER_KEY, ProjectKeys
from svc.store.project_sizes import ProjectSize, ProjectSizes
from svc.store.question_versions import LabelledQuestion, QuestionVersion, QuestionVersions
from svc.store.remnants import Remnants
from svc.store.retention import Retention, Retentions, Step, Sweeping
from svc.store.review import Drawn, Entry, Look, NewDecision, ReviewItem, ReviewQueue, Wording
from svc.store.review_due import ReviewDue
from svc.store.spool import Spool, SpoolFile, job_of
from svc.store.wanted import Wanted
from svc.store.weeks import Week, Weeks

__all__ = [
    "ANSWERED_DAYS",
    "KEPT_NAMES",
    "MASTER_KEY",
    "NAME_CHARS",
    "NANO",
    "OTHERS",
    "PREFIX",
    "PROMISE_KEPT",
    "REMEMBERED_S",
    "TOGETHER",
    "Account",
    "Activity",
    "Alarm",
    "AlarmPlace",
    "ApiKey",
    "ApiKeyRefused",
    "ApiKeys",
    "AskedPair",
    "Budget",
    "BudgetState",
    "Budgets",
    "By",
    "CalibrationState",
    "CallBudget",
    "ChallengerLabel",
    "ChallengerRecord",
    "ChallengerState",
    "ChallengerThere",
    "Challengers",
    "Claim",
    "Database",
    "Drawn",
    "DueEvent",
    "EndedJob",
    "Entry",
    "Eras",
    "Forgetting",
    "Forgotten",
    "GivenLabel",
    "Grant",
    "Hook",
    "HookAlarms",
    "HookEvents",
    "HookKind",
    "Hooks",
    "Job",
    "JobPage",
    "JobRow",
    "JobStatus",
    "Jobs",
    "Judgement",
    "Judgements",
    "KeptAnswer",
    "KeptAnswers",
    "LabelledQuestion",
    "Labels",
    "Look",
    "Members",
    "NewDecision",
    "NewEvent",
    "NewLabel",
    "NewerLabels",
    "OpenedHook",
    "Overview",
    "Per",
    "Period",
    "Periods",
    "Place",
    "ProjectFull",
    "ProjectKeys",
    "ProjectOverview",
    "ProjectSize",
    "ProjectSizes",
    "QuestionOverview",
    "QuestionVersion",
    "QuestionVersions",
    "RawReading",
    "ReachedBudget",
    "Remnants",
    "Retention",
    "Retentions",
    "ReviewDue",
    "ReviewItem",
    "ReviewQueue",
    "RowResult",
    "Scope",
    "ServedFile",
    "Spans",
    "Spool",
    "SpoolFile",
    "SpoolLost",
    "Step",
    "StorageError",
    "Stratum",
    "Subject",
    "Sums",
    "Sweeping",
    "TooManyBudgets",
    "TooManyHooks",
    "TooManyJobs",
    "TooManySums",
    "TrainingData",
    "UnknownDecision",
    "UnknownJob",
    "UnreadableKey",
    "Wanted",
    "Week",
    "Weeks",
    "WeighedLabel",
    "Wording",
    "Worth",
    "WriteTimedOut",
    "job_of",
    "new_id",
]
