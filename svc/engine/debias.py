"""`debias: "auto"`: for which models and questions one option order is enough.

It is where the order makes no difference, and where a model's preference for positions explains the
difference: then the original order is asked, and corrected by what pairs have taught.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from svc import limits
from svc.questions import DECIMALS, Question, Reading
from svc.recent import Recent
from svc.stats import OrderBias
from svc.terms import TaskKind

AUTO = "auto"


class ModelInProject(NamedTuple):
    """A project and the name of a model as it is asked, and who asks it, None where nobody knows.

    What callers of a project have a model answer teaches nothing about the questions of another
    project.
    """

    project: str
    model: str
    caller: str | None = None


@dataclass(slots=True)
class _Record:
    """What is known of one model and one exact question, in one project.

    A pair is an answer in both option orders; `since_pair` counts the requests after the last pair,
    which were made in the original order alone.
    """

    bias: OrderBias
    pairs: int = 0
    agreeing: int = 0
    since_pair: int = 0
    # Pairs that came after the bias was learned, and those of them that it told.
    later: int = 0
    told: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the order makes no difference."""
        enough = self.pairs >= limits.DEBIAS_PAIRS
        return enough and self.agreeing >= limits.DEBIAS_AGREEMENT * self.pairs

    @property
    def is_told(self) -> bool:
        """Whether the bias explains the difference."""
        enough = self.later >= limits.DEBIAS_TOLD_PAIRS
        return enough and self.told >= limits.DEBIAS_AGREEMENT * self.later

    @property
    def settled(self) -> bool:
        return self.agrees or self.is_told

    def start_over(self) -> None:
        self.pairs = self.agreeing = self.later = self.told = 0


class DebiasMemory:
    """Counts pairs for each model and exact question of a project.

    It forgets those unused for longest, and first of a caller that brought more than half of them.
    """

    def __init__(self, size: int = limits.DEBIAS_MEMORY) -> None:
        # Of each project by model and question.
        self._records: Recent[str, tuple[str, bytes], _Record] = Recent(size)
        self._lock = threading.Lock()

    def wants_pair(self, model: ModelInProject, questions: Sequence[Question]) -> bool:
        """Whether this request asks in both orders: it does as long as any question wants it."""
        with self._lock:
            # A list, so that every question counts this request.
            wishes = [
                self._wants(self._record(model, question))
                for question in questions
                if question.reversible
            ]
            return any(wishes)

    def learn(
        self,
        model: ModelInProject,
        questions: Sequence[Question],
        orders: Sequence[Sequence[Reading]],
    ) -> None:
        """Count one answer in both orders for every question."""
        with self._lock:
            for question, first, second in zip(questions, *orders, strict=True):
                if question.reversible:
                    _count(self._record(model, question), question, first, second)

    def corrected(self, model: ModelInProject, question: Question, reading: Reading) -> Reading:
        """A reading of the original order alone, as both orders would give it by what is known."""
        with self._lock:
            record = self._record(model, question)
            known = record.bias.pairs >= limits.DEBIAS_TEACHING_PAIRS
            if not question.reversible or record.agrees or not known:
                return reading
            return _by_bias(record.bias, question, reading)

    def _wants(self, record: _Record) -> bool:
        if not record.settled:
            return True
        record.since_pair += 1
        return record.since_pair >= limits.DEBIAS_CHECK_EVERY

    def _record(self, model: ModelInProject, question: Question) -> _Record:
        key = (model.model, question.digest)
        record = self._records.get(model.project, key)
        if record is None:
            record = _Record(OrderBias(question.task is TaskKind.CLASSES))
            self._records.put(model.project, key, record, model.caller)
        return record


class BothOrders(DebiasMemory):
    """Learns nothing, so that every request is asked in both orders."""

    def wants_pair(self, model: ModelInProject, questions: Sequence[Question]) -> bool:
        return any(question.reversible for question in questions)

    def learn(
        self,
        model: ModelInProject,
        questions: Sequence[Question],
        orders: Sequence[Sequence[Reading]],
    ) -> None:
        """Nothing is learned."""

    def corrected(self, model: ModelInProject, question: Question, reading: Reading) -> Reading:
        return reading


def _count(record: _Record, question: Question, first: Reading, second: Reading) -> None:
    """Count a pair; the first that is not as expected has the counting start over."""
    agree, told = _agree(question, first, second), None
    if record.bias.pairs >= limits.DEBIAS_TEACHING_PAIRS:
        expected = _by_bias(record.bias, question, first)
        both = question.merge((first, second))
        gap = record.bias.distance(expected.probabilities, both.probabilities)
        told = round(gap, DECIMALS) <= limits.DEBIAS_TOLERANCE
    record.bias.learn(first.probabilities, second.probabilities)
    record.since_pair = 0
    if record.settled and not (agree if record.agrees else told):
        record.start_over()
        return
    record.pairs += 1
    record.agreeing += agree
    if told is not None:
        record.later += 1
        record.told += told


def _by_bias(bias: OrderBias, question: Question, first: Reading) -> Reading:
    second = replace(first, probabilities=bias.reversed_of(first.probabilities))
    return question.merge((first, second))


def _agree(question: Question, first: Reading, second: Reading) -> bool:
    """The same top answer, and its probability within the tolerance."""
    gap = abs(question.confidence(first) - question.confidence(second))
    # Rounded, so that 0.8 and 0.7 are 0.1 apart in spite of floating point.
    near = round(gap, DECIMALS) <= limits.DEBIAS_TOLERANCE
    return question.top(first) == question.top(second) and near
