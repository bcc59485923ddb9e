"""How much the answers to a question depend on the way in which it is put."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc.errors import ApiError, QuotaSpent
from svc.evals.scoring import Ask
from svc.evals.variants import Change, Said, Variant, Words, joined, variants
from svc.questions import Question
from svc.records import Decision
from svc.schemas import DecisionRequest, load_decision, with_state

# The key that a variant is asked under; keys never reach a model.
_KEY = "q"


@dataclass(frozen=True, slots=True)
class WordingProbe:
    """A way to put the question of `key`, as a request about no state yet."""

    key: str
    variant: Variant
    request: DecisionRequest


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one asking: an answer to the question as it stands, or a failure."""

    said: Said | None = None
    cost_usd: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class ProbeJob:
    """A probe about a state, which is numbered from 1."""

    probe: WordingProbe
    number: int
    state: Any


@dataclass(frozen=True, slots=True)
class Flip:
    """An answer that is another one when the question is put otherwise."""

    input: int
    variant: str
    said: str
    instead: str
    spread: float


@dataclass(frozen=True, slots=True)
class Steadiness:
    """What one change to a question does to its answers.

    `compared` answers stand beside that of the question as it stands, and `flips` of them are
    others. The spread of an input is the widest range that the probability of one answer has over
    all ways to ask it; None where nothing was compared.
    """

    change: Change
    compared: int
    flips: Sequence[Flip]
    mean_spread: float | None
    max_spread: float | None
    failed: int

    @property
    def agreement(self) -> float | None:
        """The share of answers that stay the same."""
        return 1 - len(self.flips) / self.compared if self.compared else None


def probes(
    fields: Mapping[str, Any],
    asking: Mapping[str, Any],
    questions: Mapping[str, Question],
    words: Mapping[str, Words],
) -> list[WordingProbe]:
    """Every way to put each question, each asked in one option order.

    `asking` has `model` and `mode` as `POST /v1/decide` takes them. Raises `ApiError`.
    """
    how = {**asking, "debias": False, "state": {}}
    return [
        WordingProbe(key, variant, load_decision({**how, "questions": {_KEY: variant.fields}}))
        for key, question in questions.items()
        for variant in variants(fields[key], question, words.get(key, Words()))
    ]


def tell(ask: Ask, job: ProbeJob) -> Told:
    """Ask about one state; a failure is a result too. Raises `QuotaSpent`."""
    try:
        decision = ask(with_state(job.probe.request, job.state))
    except QuotaSpent:
        raise
    except ApiError as error:
        return Told(error=f"{error.type}: {error.message}")
    return Told(job.probe.variant.back(_said(decision)), decision.cost_usd)


def steadiness_of(question: Question, told: Iterable[tuple[ProbeJob, Told]]) -> list[Steadiness]:
    """The figures of one question, a row for each kind of change that it was asked with."""
    found: dict[Change, dict[int, list[tuple[str, Told]]]] = {}
    for job, one in told:
        by_input = found.setdefault(job.probe.variant.change, {})
        by_input.setdefault(job.number, []).append((job.probe.variant.name, one))
    base = {number: row[0][1].said for number, row in found.pop(Change.NOTHING, {}).items()}
    return [_steadiness(question, change, base, rows) for change, rows in found.items()]


def _said(decision: Decision) -> Said:
    (answer,), (asked,) = decision.answers.values(), decision.questions
    return Said(answer.top, tuple(asked.reading["p"]))


def _steadiness(
    question: Question,
    change: Change,
    base: Mapping[int, Said | None],
    rows: Mapping[int, Sequence[tuple[str, Told]]],
) -> Steadiness:
    compared, failed = 0, 0
    spreads: list[float] = []
    flips: list[Flip] = []
    for number, row in rows.items():
        first, others = base.get(number), _answered(question, change, row)
        failed += sum(bool(one.error) for _, one in row)
        if first is None or not others:
            continue
        compared += len(others)
        spreads.append(_spread([first, *(said for _, said in others)]))
        flips += _flips(question, number, first, others)
    return Steadiness(
        change,
        compared,
        sorted(flips, key=lambda flip: -flip.spread),
        statistics.fmean(spreads) if spreads else None,
        max(spreads, default=None),
        failed,
    )


def _answered(
    question: Question, change: Change, row: Sequence[tuple[str, Told]]
) -> list[tuple[str, Said]]:
    """The answers to one input; twins are one answer together, if none of them failed."""
    said = [(name, one.said) for name, one in row if one.said is not None]
    if change is not Change.TWINS:
        return said
    if len(said) < len(row):
        return []
    return [(change, joined(question, [one for _, one in said]))]


def _spread(said: Sequence[Said]) -> float:
    """The widest range of one probability; options that not every way has are left out."""
    columns = zip(*(one.p for one in said), strict=False)
    return max((max(column) - min(column) for column in columns), default=0.0)


def _flips(
    question: Question, number: int, first: Said, others: Sequence[tuple[str, Said]]
) -> Iterator[Flip]:
    for name, said in others:
        if not _same(question, first.top, said.top):
            spread = _spread([first, said])
            yield Flip(number, name, question.named(first.top), question.named(said.top), spread)


def _same(question: Question, top: Any, other: Any) -> bool:
    """Whether two answers mean the same; extracted values are compared as labels are."""
    if question.extracts:
        return bool(question.truth(other, {"value": top}))
    return question.named(top) == question.named(other)
