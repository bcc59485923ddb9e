"""Which questions wait for which: the stages of a request."""

from __future__ import annotations

from collections.abc import Mapping

from svc import limits
from svc.phrases import quoted
from svc.questions.kit import Question


class UnsoundDependency(Exception):
    """The dependencies of a question cannot be met."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


def stages(questions: Mapping[str, Question]) -> tuple[tuple[str, ...], ...]:
    """The keys of each stage, in the request's order; a question comes as early as it can.

    Raises `UnsoundDependency` for an unknown key, a question that depends on itself, a cycle, or
    more than `limits.STAGES` stages.
    """
    for key, question in questions.items():
        _check(key, question, questions)
    stage: dict[str, int] = {}
    while len(stage) < len(questions):
        ready = [
            key
            for key, question in questions.items()
            if key not in stage and question.dependencies <= stage.keys()
        ]
        if not ready:
            key = next(key for key in questions if key not in stage)
            raise UnsoundDependency(key, "is part of a cycle of dependencies, or waits for one")
        number = len(set(stage.values()))
        if number >= limits.STAGES:
            raise UnsoundDependency(
                ready[0], f"needs a stage more than the {limits.STAGES} that are allowed"
            )
        stage.update(dict.fromkeys(ready, number))
    count = max(stage.values()) + 1
    return tuple(tuple(key for key in questions if stage[key] == number) for number in range(count))


def _check(key: str, question: Question, questions: Mapping[str, Question]) -> None:
    if key in question.dependencies:
        raise UnsoundDependency(key, "depends on itself")
    for needed in sorted(question.dependencies - questions.keys()):
        raise UnsoundDependency(key, f"depends on {quoted(needed)}, which is not a question here")
