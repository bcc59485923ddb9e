"""A request stage by stage: what is skipped, what rules answer, and what the models answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc.deadline import Deadline
from svc.engine import answer
from svc.engine.decision_asker import Earlier
from svc.engine.plans import Findings, Group, grouped
from svc.learning import Knowledge
from svc.questions import ANSWER_MARK, ConditionValues, Question
from svc.records import REFUSED, SKIPPED, Answer, Source
from svc.schemas import DecisionRequest

# What each value that is compared counts besides its characters.
_VALUE_CHARS = 5


@dataclass(slots=True)
class Answered:
    """The answers to a request so far, question by question, and what conditions test."""

    answers: dict[str, Answer] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    values: ConditionValues = field(default_factory=ConditionValues)

    def top(self, key: str) -> Any:
        """What was answered, as a checked label."""
        return self.answers[key].top

    def has(self, key: str) -> bool:
        """Whether the question was answered, and not skipped."""
        return key in self.answers and self.answers[key].source is not Source.SKIPPED


@dataclass(frozen=True, slots=True)
class Stage:
    """The questions of one stage that models have to answer.

    `answer_fields` are added to every answer of the stage.
    """

    questions: Mapping[str, Question]
    groups: Sequence[Group]
    earlier: Earlier
    answer_fields: Mapping[str, Any]


def text_to_look_through(request: DecisionRequest, number: int) -> int:
    """About how many characters the rules of a stage may look through."""
    questions = (request.questions[key] for key in request.stages[number])
    conditions = sum(len(rule.conditions) for question in questions for rule in question.rules)
    return conditions * len(request.state.text)


def text_to_compare(request: DecisionRequest, number: int) -> int:
    """About how many characters the conditions of a stage compare with a state at most.

    To compare a short value takes as long as some characters more.
    """
    questions = [request.questions[key] for key in request.stages[number]]
    conditions = [one for question in questions for one in question.when]
    conditions += [
        one for question in questions for rule in question.rules for one in rule.conditions
    ]
    texts = [one.text for one in conditions]
    values = len(texts) + sum(text.count(",") for text in texts)
    return sum(map(len, texts)) + _VALUE_CHARS * values


def open_stage(
    request: DecisionRequest, number: int, answered: Answered, deadline: Deadline
) -> Stage:
    """Put the answers that need no model into `answered`; the rest is the stage for the models.

    Raises `Timeout`.
    """
    answer_fields = {"stage": number} if len(request.stages) > 1 else {}
    earlier_answers = {
        ANSWER_MARK + key: _as_condition(answered.top(key))
        for key in answered.answers
        if answered.has(key)
    }
    values = answered.values
    values.update(request.state.fields or {})
    values.update(earlier_answers)
    remaining = {}
    for key in request.stages[number]:
        question = request.questions[key]
        deadline.check()
        if _skips(question, values, answered):
            answered.answers[key] = SKIPPED.plus(**answer_fields)
            continue
        index = next((i for i, rule in enumerate(question.rules) if rule.holds(values)), None)
        if index is None:
            remaining[key] = question
        else:
            rule_fields = {"rule": index, **answer_fields}
            label = question.rules[index].answer
            answered.answers[key] = answer.by_rule(question, label, rule_fields)
    earlier = _earlier(request, remaining, answered)
    return Stage(remaining, grouped(remaining), earlier, answer_fields)


def close_stage(
    stage: Stage,
    findings: Findings,
    knowledge: Knowledge,
    answered: Answered,
    deadline: Deadline,
) -> None:
    """Add what the models found; a question without a finding is refused. Raises `Timeout`."""
    for key, question in stage.questions.items():
        deadline.check()
        finding = findings.by_key.get(key)
        if finding is None:
            answered.answers[key] = REFUSED.plus(**stage.answer_fields)
            continue
        answered.answers[key] = answer.by_models(knowledge, question, finding, stage.answer_fields)
    answered.findings.add(findings)


def _as_condition(label: Any) -> Any:
    """An earlier answer as conditions read it, selected keys as a list."""
    return list(label) if isinstance(label, tuple) else label


def _skips(question: Question, values: ConditionValues, answered: Answered) -> bool:
    needed_answer_was_skipped = not all(map(answered.has, question.dependencies))
    if needed_answer_was_skipped:
        return True
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
