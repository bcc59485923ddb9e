"""What the server counts, over all of its processes, in the format of Prometheus.

The numbers stand in memory that forked processes share: each process writes a row of its own, and
the one that is scraped sums them up. The rows of processes that ended stay, so that a counter never
falls while the server runs.
"""

from __future__ import annotations

import logging
import mmap
import re
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_flask_exporter import PrometheusMetrics

from svc import errors
from svc.errors import SvcError
from svc.records import Decision, Source
from svc.sharing import ProcessPlaces
from svc.tallies import OTHERS, TallyBoard
from svc.usage import Counts

# Upper bounds of the duration's buckets, in seconds: from a cached answer to the deadline.
BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
STATUSES = range(100, 600)

# Prometheus sees no increase in a counter that first appears above 0, so these are always shown.
SHOWN = {200, 202, *errors.statuses()}

# In the order of their columns.
COUNTERS = {
    "svc_decisions": "Decisions answered.",
    "svc_cache_hits": "Decisions answered from the decision cache alone.",
    "svc_answers": "Answers in these decisions, without those of skipped questions.",
    "svc_abstains": "Answers whose confidence was below the question's min_confidence.",
}

# The counters of each model: name, help text, and the number.
_OF_MODELS: tuple[tuple[str, str, Callable[[Counts], float]], ...] = (
    ("svc_model_calls", "Calls to models, retries not counted.", lambda counts: counts.calls),
    ("svc_model_failures", "Calls that gave no completion.", lambda counts: counts.failures),
    ("svc_model_cost_dollars", "Dollars that calls cost.", lambda counts: counts.cost_usd),
)

# The counters of each project with the models that answered: name, and help text.
_OF_PROJECTS = (
    ("svc_project_decisions", "Decisions answered, by project and answering models."),
    ("svc_project_cost_dollars", "Dollars that the calls of these decisions cost."),
    ("svc_project_input_tokens", "Input tokens that models reported for these decisions."),
)

# The counters of each project with the models that answered and a question type.
_OF_TYPES = (
    ("svc_project_answers", "Answers, by project, answering models and question type."),
    ("svc_project_abstains", "Those of them below the question's min_confidence."),
)

# The gauges of each budget: name, and help text. There are at most `limits.BUDGETS` of these.
_OF_BUDGETS = (
    ("svc_budget_limit_dollars", "What may be spent in a period of this budget."),
    ("svc_budget_spent_dollars", "What is spent or reserved in its present period."),
)

# The scope, the subject and the period of a budget, its limit, and what is spent of it, in dollars.
BudgetSeries = tuple[tuple[str, str, str], float, float]

# Whether somebody may see the series that has these labels.
Sees = Callable[[Mapping[str, str]], bool]

# How many projects with their models have series of their own, and how many of these with a
# question type. All beyond are counted together, so that callers cannot fill a Prometheus server.
PROJECT_SERIES = 128
TYPE_SERIES = 512

# The models of one project that a process counts by their names. Its further ones are counted as
# `REST`, so that none takes the series of the others by inventing names.
PROJECT_MODELS = 16
REST = "(others)"

# A project and models with a longer name are counted with the others.
_SERIES_BYTES = 640

# The versions in an `Accept` header, and what the Prometheus client takes as one.
_VERSIONS = re.compile(r"version=([^;,]*)")
_VERSION = re.compile(r"\s*[0-9]{1,4}(\.[0-9]{1,4}){0,3}\s*")

# Stands between the parts of a name; no project, model or type has it.
_BETWEEN = "\x1f"

# The rows of processes. Later processes go on with the rows of those that ended.
ROWS = 512

# The columns of a row are the counters, the sum of seconds, decisions by duration (the last column
# is for those above all bounds), and responses by status.
_SECONDS = len(COUNTERS)
_BUCKETS = _SECONDS + 1
_STATUSES = _BUCKETS + len(BUCKETS) + 1
_COLUMNS = _STATUSES + len(STATUSES)

log = logging.getLogger(__name__)


def everything(_labels: Mapping[str, str]) -> bool:
    """What whoever may see all projects sees of the series."""
    return True


def is_of(project: str, key_id: str, labels: Mapping[str, str]) -> bool:
    """Whether the series with these labels is a project's, its key's, or the whole server's."""
    if "scope" in labels:
        return labels["subject"] == (project if labels["scope"] == "project" else key_id)
    # What is counted together with others is of many projects.
    return "project" not in labels or (labels["project"] == project and labels["model"] != OTHERS)


class Board:
    """The rows of numbers; made before the processes that write them are forked."""

    def __init__(self) -> None:
        self._places = ProcessPlaces(ROWS)
        self._rows = memoryview(mmap.mmap(-1, ROWS * _COLUMNS * 8)).cast("d")
        self.projects = TallyBoard(PROJECT_SERIES, _SERIES_BYTES, len(_OF_PROJECTS))
        self.types = TallyBoard(TYPE_SERIES, _SERIES_BYTES, len(_OF_TYPES))

    def new_row(self) -> memoryview[float]:
        """A row for this process alone, perhaps with the numbers of one that ended."""
        place = self._places.take()
        if place is None:
            # So many processes run that nobody will see what this one counts.
            return memoryview(bytearray(_COLUMNS * 8)).cast("d")
        return self._rows[place * _COLUMNS :][:_COLUMNS]

    def sums(self) -> list[float]:
        """The sum of each column."""
        numbers = self._rows[: self._places.taken * _COLUMNS].tolist()
        return [sum(numbers[column::_COLUMNS]) for column in range(_COLUMNS)]

    def close(self) -> None:
        """Release it in this process."""
        self.types.close()
        self.projects.close()
        self._places.close()


class Metrics:
    """Counts for one process, and shows the sums of all."""

    def __init__(
        self,
        board: Board,
        quota: Callable[[], int] | None = None,
        models: Callable[[], Mapping[str, Counts]] = dict,
        backlog: Callable[[], tuple[int, int]] = lambda: (0, 0),
        dollars: Callable[[], Iterable[BudgetSeries]] = tuple,
    ) -> None:
        """`quota` reads how many calls the daily limit still allows, None without a limit.

        `backlog` reads how many jobs are open, and how many rows they still have. `models` reads
        the counts of each model, `dollars` the budgets.
        """
        self._board, self._row, self._quota = board, board.new_row(), quota
        self._backlog, self._models, self._dollars = backlog, models, dollars
        self._projects, self._types = board.projects.open(), board.types.open()
        self._models_of: defaultdict[str, set[str]] = defaultdict(set)
        for series in self._projects.names:
            project, _, names = series.partition(_BETWEEN)
            self._models_of[project].add(names)
        self._lock = threading.Lock()
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(self)

    def decided(self, seconds: float, decision: Decision) -> None:
        """Count a decision that took `seconds` from its request's arrival."""
        answers = decision.answers.values()
        answered = [answer for answer in answers if answer.source is not Source.SKIPPED]
        abstained = sum(answer.abstains for answer in answered)
        row = self._row
        with self._lock:
            for column, count in enumerate((1, decision.cached, len(answered), abstained)):
                row[column] += count
            row[_SECONDS] += seconds
            row[_BUCKETS + bisect_left(BUCKETS, seconds)] += 1
        self._count_by_project(decision)

    def _count_by_project(self, decision: Decision) -> None:
        series = f"{decision.project}{_BETWEEN}{self._named(decision.project, decision.model)}"
        self._projects.add(series, (1, decision.cost_usd, decision.input_tokens))
        answered, abstained = Counter[str](), Counter[str]()
        for question in decision.questions:
            answer = decision.answers[question.key]
            if answer.source is not Source.SKIPPED:
                answered[question.type] += 1
                abstained[question.type] += answer.abstains
        for kind, count in answered.items():
            self._types.add(f"{series}{_BETWEEN}{kind}", (count, abstained[kind]))

    def _named(self, project: str, models: str) -> str:
        """The models of a decision, or `REST` where their project has enough others.

        What has no series of its own in any case is not remembered.
        """
        with self._lock:
            full = len(self._models_of) >= PROJECT_SERIES and project not in self._models_of
            long = len(f"{project}{_BETWEEN}{models}".encode()) > _SERIES_BYTES
            if full or long:
                return models
            known = self._models_of[project]
            if len(known) < PROJECT_MODELS:
                known.add(models)
            return models if models in known else REST

    def responded(self, status: int) -> None:
        """Count a response."""
        with self._lock:
            self._row[_STATUSES + status - STATUSES.start] += 1

    def render(
        self,
        accept: str | None = None,
        names: list[str] | None = None,
        sees: Sees = everything,
    ) -> tuple[str, str]:
        """The text of the samples `names`, or of all, for an `Accept` header; and its type.

        It has the series that the caller `sees`.
        """
        exporter = PrometheusMetrics.for_app_factory(
            path=None, export_defaults=False, registry=_Seen(self._registry, sees)
        )
        text, content_type = exporter.generate_metrics(_understood(accept), names)
        return str(text), str(content_type)

    def collect(self) -> Iterator[Metric]:
        """The metrics, in the form in which the Prometheus client collects them."""
        sums = self._board.sums()
        for column, (name, text) in enumerate(COUNTERS.items()):
            yield CounterMetricFamily(name, text, sums[column])
        yield _durations(sums)
        yield _responses(sums)
        yield from _by_model(self._models())
        yield from _by_series(_OF_PROJECTS, ("project", "model"), self._board.projects)
        yield from _by_series(_OF_TYPES, ("project", "model", "type"), self._board.types)
        if self._quota is not None:
            yield from self._remaining(self._quota)
        yield from self._of_jobs()
        yield from self._of_budgets()

    def describe(self) -> Iterator[Metric]:
        """The metrics by whose names a scrape may ask, also of budgets that are set later."""
        yield from self.collect()
        for name, text in _OF_BUDGETS:
            yield GaugeMetricFamily(name, text)

    def _of_budgets(self) -> Iterator[Metric]:
        try:
            budgets = list(self._dollars())
        except SvcError:
            log.warning("the budgets could not be read for the metrics")
            return
        for column, (name, text) in enumerate(_OF_BUDGETS):
            family = GaugeMetricFamily(name, text, labels=("scope", "subject", "per"))
            for series, *amounts in budgets:
                family.add_metric(series, amounts[column])
            if budgets:
                yield family

    def _remaining(self, quota: Callable[[], int]) -> Iterator[Metric]:
        try:
            left = quota()
        except SvcError:
            log.warning("the daily quota could not be read for the metrics")
            return
        text = "Calls to the aggregator that SVC_DAILY_LIMIT still allows this UTC day."
        yield GaugeMetricFamily("svc_daily_quota_remaining", text, left)

    def _of_jobs(self) -> Iterator[Metric]:
        try:
            jobs, rows = self._backlog()
        except SvcError:
            log.warning("the open jobs could not be read for the metrics")
            return
        yield GaugeMetricFamily("svc_jobs_open", "Jobs that have not ended.", jobs)
        text = "Rows of open jobs that have neither a decision nor an error."
        yield GaugeMetricFamily("svc_job_rows_left", text, rows)


def _understood(accept: str | None) -> str | None:
    """An `Accept` header that the Prometheus client can read, None where it cannot.

    It knows no quoted values, and fails where a version is not of numbers.
    """
    plain = (accept or "").replace('"', "")
    return plain if all(map(_VERSION.fullmatch, _VERSIONS.findall(plain))) else None


class _Seen:
    """The series of a registry that somebody may see; the exporter reads it as a registry."""

    def __init__(self, registry: Any, sees: Sees) -> None:
        self._registry, self._sees = registry, sees

    def restricted_registry(self, names: Iterable[str]) -> _Seen:
        return _Seen(self._registry.restricted_registry(names), self._sees)

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [one for one in family.samples if self._sees(one.labels)]
            yield family


def _durations(sums: list[float]) -> Metric:
    counts = accumulate(sums[_BUCKETS:_STATUSES])
    bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
    return HistogramMetricFamily(
        "svc_decide_duration_seconds",
        "Seconds from the arrival of a request to its decision.",
        buckets=list(zip(bounds, counts, strict=True)),
        sum_value=sums[_SECONDS],
    )


def _by_model(counts: Mapping[str, Counts]) -> Iterator[Metric]:
    for name, text, read in _OF_MODELS:
        family = CounterMetricFamily(name, text, labels=["model"])
        for model_id, of_model in sorted(counts.items()):
            family.add_metric([model_id], read(of_model))
        yield family
    tokens = CounterMetricFamily(
        "svc_model_tokens", "Tokens that models reported.", labels=["model", "direction"]
    )
    mass = SummaryMetricFamily(
        "svc_model_label_mass",
        "Probability that fell on valid labels, of each reading of label probabilities.",
        labels=["model"],
    )
    for model_id, of_model in sorted(counts.items()):
        tokens.add_metric([model_id, "input"], of_model.input_tokens)
        tokens.add_metric([model_id, "output"], of_model.output_tokens)
        mass.add_metric([model_id], count_value=int(of_model.readings), sum_value=of_model.mass)
    yield from (tokens, mass)


def _by_series(
    counters: Sequence[tuple[str, str]], labels: Sequence[str], board: TallyBoard
) -> Iterator[Metric]:
    sums = sorted(board.sums().items())
    for column, (name, text) in enumerate(counters):
        family = CounterMetricFamily(name, text, labels=labels)
        for series, numbers in sums:
            parts = [OTHERS] * len(labels) if series == OTHERS else series.split(_BETWEEN)
            family.add_metric(parts, numbers[column])
        yield family


def _responses(sums: list[float]) -> Metric:
    family = CounterMetricFamily("svc_http_responses", "HTTP responses.", labels=["status"])
    for status, count in zip(STATUSES, sums[_STATUSES:], strict=True):
        if count or status in SHOWN:
            family.add_metric([str(status)], count)
    return family
