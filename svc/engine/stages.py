"""A request stage by stage: what is skipped, what rules answer, and what the models said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc.engine import answer
from svc.engine.decision_asker import Earlier
from svc.engine.plans import Findings, Group, grouped
from svc.learning import Knowledge
from svc.questions import ANSWER_MARK, Question
from svc.records import SKIPPED, Answer, Source
from svc.schemas import DecisionRequest


@dataclass(slots=True)
class Answered:
    """What came of a request so far, question by question."""

    answers: dict[str, Answer] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    def top(self, key: str) -> Any:
        """What was answered, as a checked label."""
        return self.answers[key].top

    def has(self, key: str) -> bool:
        """Whether the question was answered, and not skipped."""
        return key in self.answers and self.answers[key].source is not Source.SKIPPED


@dataclass(frozen=True, slots=True)
class Stage:
    """The questions of one stage that models have to answer."""

    questions: Mapping[str, Question]
    groups: Sequence[Group]
    earlier: Earlier
    told: Mapping[str, Any]  # what every answer says of the stage


def open_stage(request: DecisionRequest, number: int, answered: Answered) -> Stage:
    """Answer what needs no model, into `answered`; the stage that is left for the models."""
    told = {"stage": number} if len(request.stages) > 1 else {}
    marked = {
        ANSWER_MARK + key: _as_condition(answered.top(key))
        for key in answered.answers
        if answered.has(key)
    }
    values = {**(request.state.fields or {}), **marked}
    left = {}
    for key in request.stages[number]:
        question = request.questions[key]
        if _skips(question, values, answered):
            answered.answers[key] = SKIPPED.plus(**told)
            continue
        index = next((i for i, rule in enumerate(question.rules) if rule.holds(values)), None)
        if index is None:
            left[key] = question
        else:
            ruled = {"rule": index, **told}
            answered.answers[key] = answer.by_rule(question, question.rules[index].answer, ruled)
    return Stage(left, grouped(left), _earlier(request, left, answered), told)


def close_stage(stage: Stage, found: Findings, knowledge: Knowledge, answered: Answered) -> None:
    """Add what the models found."""
    for key, question in stage.questions.items():
        finding = found.by_key[key]
        answered.answers[key] = answer.by_models(knowledge, question, finding, stage.told)
    answered.findings.add(found)


def _as_condition(label: Any) -> Any:
    """An earlier answer as conditions read it, selected keys as a list."""
    return list(label) if isinstance(label, tuple) else label


def _skips(question: Question, values: Mapping[str, Any], answered: Answered) -> bool:
    if not all(map(answered.has, question.dependencies)):
        return True  # an answer that it needs was skipped
    return not all(condition.holds(values) for condition in question.when)


def _earlier(
    request: DecisionRequest, questions: Mapping[str, Question], answered: Answered
) -> Earlier:
    """Instructions and answers of the questions that any of `questions` depends on."""
    needed = frozenset[str]().union(*(question.dependencies for question in questions.values()))
    return tuple(
        (question.instructions, question.spoken(answered.top(key)))
        for key, question in request.questions.items()
        if key in needed
    )
