"""Answer a request stage by stage: skip, apply rules, ask the models for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc.engine import answer
from svc.engine.knowledge import Knowledge
from svc.engine.plans import Findings, Group
from svc.questions import Question
from svc.questions.conditions import ANSWER_MARK
from svc.schemas import DecisionRequest

Earlier = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Answered:
    """What came of a request, question by question; `answers` are in the request's order."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    labels: dict[str, Any] = field(default_factory=dict)  # of the questions that were answered


def run(
    request: DecisionRequest,
    knowledge: Knowledge,
    ask: Callable[[Sequence[Group], Earlier], Findings],
) -> Answered:
    """Answer all stages; `ask` puts one stage's groups, with earlier answers, to the models."""
    answered = Answered(answers={key: {} for key in request.questions})
    for number, keys in enumerate(request.stages):
        open_questions = _without_models(request, keys, answered)
        found = ask(_groups(open_questions), _earlier(request, open_questions, answered))
        for key, question in open_questions.items():
            finding = found.by_key[key]
            answered.answers[key] = answer.by_models(
                knowledge, question, finding.reading, finding.extra
            )
            answered.labels[key] = question.top(knowledge.calibrated(question, finding.reading))
        answered.findings.add(found)
        if len(request.stages) > 1:
            for key in keys:
                answered.answers[key] = {**answered.answers[key], "stage": number}
    return answered


def _without_models(
    request: DecisionRequest, keys: Sequence[str], answered: Answered
) -> dict[str, Question]:
    """Answer what needs no model; the questions of the stage that do."""
    values = {**(request.state.fields or {}), **_marked(answered.labels)}
    left = {}
    for key in keys:
        question = request.questions[key]
        if _skips(question, values, answered):
            answered.answers[key] = answer.SKIPPED
            continue
        index = next((i for i, rule in enumerate(question.rules) if rule.holds(values)), None)
        if index is None:
            left[key] = question
            continue
        label = question.rules[index].answer
        answered.answers[key] = answer.by_rule(question, label, index)
        answered.labels[key] = label
    return left


def _skips(question: Question, values: Mapping[str, Any], answered: Answered) -> bool:
    if not question.dependencies <= answered.labels.keys():
        return True  # an answer that it needs was skipped
    return not all(condition.holds(values) for condition in question.when)


def _marked(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Earlier answers as conditions read them, selected keys as a list."""
    return {
        ANSWER_MARK + key: list(label) if isinstance(label, tuple) else label
        for key, label in labels.items()
    }


def _groups(questions: Mapping[str, Question]) -> list[Group]:
    """One call for all questions, and one of its own for each that thinks."""
    together = {key: question for key, question in questions.items() if not question.think}
    alone = [
        Group({key: question}, think=True) for key, question in questions.items() if question.think
    ]
    return [Group(together), *alone] if together else alone


def _earlier(
    request: DecisionRequest, questions: Mapping[str, Question], answered: Answered
) -> Earlier:
    """Instructions and answers of the questions that any of `questions` depends on."""
    needed = frozenset[str]().union(*(question.dependencies for question in questions.values()))
    return tuple(
        (question.instructions, question.spoken(answered.labels[key]))
        for key, question in request.questions.items()
        if key in needed
    )


def planned_calls(request: DecisionRequest, members: int, orders: int) -> int:
    """Calls of the plan, had every question to be asked: members, orders, stages, think."""
    calls = 0
    for keys in request.stages:
        for group in _groups({key: request.questions[key] for key in keys}):
            reversible = any(question.reversible for question in group.questions.values())
            calls += members * (orders if reversible else 1)
    return calls
