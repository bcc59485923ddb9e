"""Whether a true answer can be given to a question of a decision, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from svc.errors import InvalidRequest, NotFound
from svc.learning.labelled import worths
from svc.learning.wordings import Wording, Wordings
from svc.phrases import quoted
from svc.records import Answer, DecisionFacts, Source
from svc.schemas import Feedback
from svc.store import NewLabel, QuestionVersions
from svc.store.decisions import StoredDecision


class Checked(NamedTuple):
    """A label that can be stored: as the question keeps it, and as its task has it."""

    seq: int
    facts: DecisionFacts
    wording: Wording
    feedback: Feedback
    label: Any
    truth: int
    reading: Mapping[str, Any]
    evidence: Sequence[float]
    answered_by: str


class Checks:
    """Checks the labels of one request, which often are about the same questions."""

    def __init__(self, versions: QuestionVersions, now_ms: int) -> None:
        """`now_ms` is the time of the labels, in unix milliseconds."""
        self._wordings, self._now_ms = Wordings(versions), now_ms

    @property
    def chars_read(self) -> int:
        """How many characters of exact questions were read."""
        return self._wordings.chars

    def check(self, decision: StoredDecision, feedback: Feedback) -> Checked:
        """The label, if it can be given to the decision.

        Raises `NotFound`, `InvalidRequest` and `StorageError`.
        """
        key = feedback.question
        stored, answer = decision.readings.get(key), decision.answers.get(key)
        if stored is None or answer is None:
            raise NotFound(f"the decision has no question {quoted(key)}")
        if stored.reading is None:
            reason = _why_no_model(answer)
            raise InvalidRequest(
                f"question {quoted(key)} {reason}; a label would teach nothing about a model"
            )
        wording = self._wordings.get(stored.question_id)
        question = wording.question
        if decision.facts.is_strict and question.extracts:
            raise InvalidRequest(
                f"question {quoted(key)}: the value was not kept under privacy: strict, "
                "so no label can be compared with it"
            )
        try:
            label = question.check_label(feedback.label)
        except ValueError as error:
            raise InvalidRequest(f"question {quoted(key)}: the label {error}") from None
        truth = question.truth(label, answer.fields)
        evidence = question.evidence(stored.reading["p"], answer.fields)
        by = _answered_by(decision.facts, stored.reading, answer)
        found = (label, truth, stored.reading, evidence, by)
        return Checked(decision.seq, decision.facts, wording, feedback, *found)

    def labels(self, checked: Sequence[Checked]) -> list[NewLabel]:
        """The labels as they are stored, in any order; what they are worth is told of all at once.

        One by one that would take longer than all else.
        """
        by_question: dict[int, list[Checked]] = {}
        for one in checked:
            by_question.setdefault(one.wording.version.question_id, []).append(one)
        return [label for ones in by_question.values() for label in self._weighed(ones)]

    def _weighed(self, checked: Sequence[Checked]) -> Iterator[NewLabel]:
        """The labels of one exact question."""
        question = checked[0].wording.question
        p = [one.evidence for one in checked]
        worth = worths(question.task, p, [one.truth for one in checked])
        for one, its_p, its_worth in zip(checked, p, worth, strict=True):
            facts, feedback = one.facts, one.feedback
            yield NewLabel(
                decision_seq=one.seq,
                key=feedback.question,
                project=facts.project,
                digest=one.wording.version.digest,
                question_id=one.wording.version.question_id,
                label=one.label,
                truth=one.truth,
                p=its_p,
                worth=its_worth,
                answered_by=one.answered_by,
                created_at=self._now_ms,
                sampled=feedback.sampled,
                chance=feedback.chance,
                members=one.reading.get("members"),
                reviewer=feedback.reviewer,
            )


def _answered_by(facts: DecisionFacts, reading: Mapping[str, Any], answer: Answer) -> str:
    """As labels are grouped; decisions from before readings said it have it in their parts."""
    models = "+".join(sorted(reading.get("members", ()))) or answer.fields.get("answered_by")
    return reading.get("by") or f"{models or facts.model} {facts.mode}"


def _why_no_model(answer: Answer) -> str:
    """Why an answer is not one of a model's."""
    if answer.source is not Source.SKIPPED:
        return "was answered by a rule"
    return "got no answer from a model" if answer.fields.get("refused") else "was skipped"
