"""How far answers agree with the labels that people gave, question by question."""

from __future__ import annotations

import heapq
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from svc.errors import InvalidRequest, SettingsError
from svc.phrases import quoted
from svc.questions import Question
from svc.records import Answer, AskedQuestion, Decision, Source
from svc.stats import TASKS, Floats, Ints, expected_calibration_error, thresholds
from svc.terms import TaskKind


def check_labels(questions: Mapping[str, Question], labels: Any, name: str) -> dict[str, Any]:
    """The labels of a line after their check; a question may have none.

    Raises `InvalidRequest` unless it is an object of question key to valid answer.
    """
    if not isinstance(labels, dict):
        raise InvalidRequest(f"{name}: must be an object of question key to true answer")
    checked = {}
    for key, label in labels.items():
        if key not in questions:
            raise InvalidRequest(f"{name}: there is no question {quoted(key)}")
        try:
            checked[key] = questions[key].check_label(label)
        except ValueError as error:
            raise InvalidRequest(f"{name}: question {quoted(key)}: {error}") from None
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An answer and its label; a skipped question has only the label."""

    label: str
    answer: str = ""
    agrees: bool = False
    confidence: float = 0.0
    brier: float = 0.0
    skipped: bool = False

    def line(self) -> dict[str, Any]:
        """Its fields in an output line."""
        if self.skipped:
            return {"label": self.label, "skipped": True}
        fields = asdict(self)
        del fields["skipped"]
        return fields


def compare(
    questions: Mapping[str, Question], labels: Mapping[str, Any], decision: Decision
) -> dict[str, Comparison]:
    """A comparison for each labelled question."""
    outcomes = {outcome.key: outcome for outcome in decision.questions}
    return {
        key: _compared(questions[key], label, decision.answers[key], outcomes[key])
        for key, label in labels.items()
    }


def _compared(question: Question, label: Any, answer: Answer, outcome: AskedQuestion) -> Comparison:
    if answer.source is Source.SKIPPED:
        return Comparison(label=question.named(label), skipped=True)
    if answer.source is Source.RULE:
        p, confidence = question.stored(question.certain(answer.top))["p"], 1.0
        given = question.named(answer.top)
    else:
        given = outcome.top if question.tallies else question.named(answer.top)
        p, confidence = outcome.reading["p"], outcome.confidence
    task = TASKS[question.task]
    row = np.array([question.evidence(p, answer.fields)])
    truth = np.array([question.truth(label, answer.fields)])
    return Comparison(
        label=question.named(label),
        answer=given,
        agrees=bool(task.correct(row, truth)[0]),
        confidence=round(confidence, 6),
        brier=round(float(task.briers(row, truth)[0]), 6),
    )


@dataclass(slots=True)
class Agreement:
    """The figures of one question, in nine bytes a line.

    Answers that are few enough are `confusable`: `confusion` counts pairs of label and answer.
    `brier` is the sum of the scores, and `agreeing` holds 1 where label and answer agree.
    """

    examples_kept: int
    confusable: bool = True
    skipped: int = 0
    brier: float = 0.0
    confidences: array[float] = field(default_factory=lambda: array("d"))
    agreeing: array[int] = field(default_factory=lambda: array("b"))
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    disagreements: list[tuple[float, int, str, str]] = field(default_factory=list)

    def add(self, line: int, compared: Comparison) -> None:
        """Count one comparison; `line` is its number."""
        if compared.skipped:
            self.skipped += 1
            return
        label, answer, confidence = compared.label, compared.answer, compared.confidence
        self.confidences.append(confidence)
        self.agreeing.append(compared.agrees)
        self.brier += compared.brier
        if self.confusable:
            self.confusion[label, answer] += 1
        if not compared.agrees:
            heapq.heappush(self.disagreements, (confidence, -line, label, answer))
            if len(self.disagreements) > self.examples_kept:
                heapq.heappop(self.disagreements)

    @property
    def answers(self) -> int:
        return len(self.agreeing)

    @property
    def ece(self) -> float:
        """The expected calibration error."""
        return expected_calibration_error(*self._arrays())

    @property
    def promises(self) -> list[dict[str, Any]]:
        """For each target accuracy the lowest confidence that keeps it, see `stats.thresholds`."""
        return thresholds.report(*self._arrays(), ordered=False)

    def reaching(self, low: float) -> tuple[int, int]:
        """How many answers have a confidence of at least `low`, and how many of them agree."""
        confidences, agreeing = self._arrays()
        return int((confidences >= low).sum()), int(agreeing[confidences >= low].sum())

    @property
    def examples(self) -> list[tuple[int, float, str, str]]:
        """The surest disagreements: line, confidence, label, answer."""
        ordered = sorted(self.disagreements, reverse=True)
        return [(-line, confidence, label, answer) for confidence, line, label, answer in ordered]

    def _arrays(self) -> tuple[Floats, Ints]:
        return np.array(self.confidences), np.array(self.agreeing, np.int64)


def add_up(
    lines: Iterable[bytes], questions: Mapping[str, Question], examples: int
) -> dict[str, Agreement]:
    """The figures of every question, from the lines of an output.

    Raises `SettingsError` for a line that is damaged.
    """
    agreements = {
        key: Agreement(examples, confusable=question.task is not TaskKind.RIGHTNESS)
        for key, question in questions.items()
    }
    for number, text in enumerate(lines, 1):
        try:
            for key, compared in json.loads(text).get("compared", {}).items():
                agreements[key].add(number, Comparison(**compared))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            raise SettingsError(
                f"line {number} of the output is damaged; --restart starts again"
            ) from None
    return agreements
