"""`debias: "auto"`: for which models and questions the option order makes no difference."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from svc import limits
from svc.questions import DECIMALS, Question, Reading

AUTO = "auto"


@dataclass(slots=True)
class _Record:
    """What is known of one model and one exact question.

    A pair is an answer in both option orders; `since_pair` counts the requests after the last pair,
    which were made in the original order alone.
    """

    pairs: int = 0
    agreeing: int = 0
    since_pair: int = 0

    @property
    def settled(self) -> bool:
        enough = self.pairs >= limits.DEBIAS_PAIRS
        return enough and self.agreeing >= limits.DEBIAS_AGREEMENT * self.pairs


class DebiasMemory:
    """Counts pairs for each model and exact question, and forgets those unused for longest."""

    def __init__(self, size: int = limits.DEBIAS_MEMORY) -> None:
        self._size = size
        self._records: OrderedDict[tuple[str, bytes], _Record] = OrderedDict()
        self._lock = threading.Lock()

    def wants_pair(self, model_id: str, questions: Sequence[Question]) -> bool:
        """Whether this request asks in both orders: it does as long as any question wants it."""
        with self._lock:
            # A list, so that every question counts this request.
            wishes = [
                self._wants(self._record(model_id, question))
                for question in questions
                if question.reversible
            ]
            return any(wishes)

    def learn(
        self, model_id: str, questions: Sequence[Question], orders: Sequence[Sequence[Reading]]
    ) -> None:
        """Count one answer in both orders for every question."""
        with self._lock:
            for question, first, second in zip(questions, *orders, strict=True):
                if question.reversible:
                    self._count(self._record(model_id, question), _agree(question, first, second))

    def _wants(self, record: _Record) -> bool:
        if not record.settled:
            return True
        record.since_pair += 1
        return record.since_pair >= limits.DEBIAS_CHECK_EVERY

    def _count(self, record: _Record, agree: bool) -> None:
        if record.settled and not agree:
            record.pairs = record.agreeing = 0
        else:
            record.pairs += 1
            record.agreeing += agree
        record.since_pair = 0

    def _record(self, model_id: str, question: Question) -> _Record:
        key = (model_id, question.digest)
        record = self._records.setdefault(key, _Record())
        self._records.move_to_end(key)
        if len(self._records) > self._size:
            self._records.popitem(last=False)
        return record


class BothOrders(DebiasMemory):
    """Learns nothing, so that every request is asked in both orders."""

    def wants_pair(self, model_id: str, questions: Sequence[Question]) -> bool:
        return any(question.reversible for question in questions)

    def learn(
        self, model_id: str, questions: Sequence[Question], orders: Sequence[Sequence[Reading]]
    ) -> None:
        """Nothing is learned."""


def _agree(question: Question, first: Reading, second: Reading) -> bool:
    """The same top answer, and its probability within the tolerance."""
    gap = abs(question.confidence(first) - question.confidence(second))
    # Rounded, so that 0.8 and 0.7 are 0.1 apart in spite of floating point.
    near = round(gap, DECIMALS) <= limits.DEBIAS_TOLERANCE
    return question.top(first) == question.top(second) and near
