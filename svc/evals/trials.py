"""Candidates, each asked about the same rows, and ranked by what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from svc.batch import FAILURES
from svc.evals.asking import results_of
from svc.evals.candidates import Candidate
from svc.evals.figures import Figures, figures_of
from svc.evals.scoring import Scored, score
from svc.evals.sets import EvalRow
from svc.records import Decision
from svc.schemas import DecisionRequest

Ranking = list[tuple[Candidate, Figures]]


class Engine(Protocol):
    """What makes decisions."""

    def decide(self, request: DecisionRequest) -> Decision: ...
    def at_once(self, request: DecisionRequest, wanted: int) -> int: ...
    def cut(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Job:
    """A row for a candidate, which goes by its place."""

    place: int
    candidate: Candidate
    row: EvalRow


def trials(
    tried: Sequence[Candidate], rows: Sequence[EvalRow], engine: Engine, concurrency: int
) -> Ranking:
    """Every candidate with its figures, the best first. Raises `QuotaSpent`."""
    jobs = [_Job(place, one, row) for place, one in enumerate(tried) for row in rows]
    threads = min(engine.at_once(one.request, concurrency) for one in tried)
    scored: list[list[Scored]] = [[] for _ in tried]
    # How many of the last rows failed, one after the other.
    failures = [0] * len(tried)

    def work(job: _Job) -> Scored:
        if failures[job.place] >= FAILURES:
            return Scored(error=f"not asked after {FAILURES} failures in a row")
        return score(engine.decide, job.candidate.request, job.row)

    def cut() -> None:
        # An engine that was cut answers nothing any more, and it may be asked again.
        if sum(map(len, scored)) < len(jobs):
            engine.cut()

    with closing(results_of(jobs, work, threads, cut)) as results:
        for job, one in results:
            scored[job.place].append(one)
            if failures[job.place] < FAILURES:
                failures[job.place] = failures[job.place] + 1 if one.error else 0
    return ranked(zip(tried, map(figures_of, scored), strict=True))


def ranked(tried: Iterable[tuple[Candidate, Figures]]) -> Ranking:
    """The best first: by accuracy, then calibration error, then cost. A failed row is not right."""
    return sorted(tried, key=lambda one: _order(one[1]))


def accuracy(found: Figures) -> float:
    """The share of right answers among all rows, failed ones included."""
    return found.right / max(1, found.rows + found.failed)


def _order(found: Figures) -> tuple[float, float, float]:
    ece = 1.0 if found.ece is None else found.ece
    return -accuracy(found), ece, found.cost_usd
