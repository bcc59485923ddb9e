"""From a reading to the answer that the caller sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.questions import Question, Reading
from svc.questions.labels import DECIMALS

SKIPPED = {"skipped": True}


def calibrated(question: Question, reading: Reading) -> Reading:
    """The reading as the project's feedback has shaped it."""
    return reading


def confidence(question: Question, reading: Reading) -> float:
    """How sure the calibrated reading is of its top answer, as the caller would see it."""
    return round(question.confidence(calibrated(question, reading)), DECIMALS)


def by_models(question: Question, reading: Reading, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The answer that models gave; `extra` are the fields that the plan adds."""
    fields = question.answer(calibrated(question, reading))
    return {**fields, "calibrated": False, **extra, **_coverage(question)}


def by_rule(question: Question, label: Any, rule: int) -> dict[str, Any]:
    """The answer that a rule gave: all probability on its label."""
    fields = question.answer(question.certain(label))
    return {**fields, "confidence": 1.0, "calibrated": False, "rule": rule, **_coverage(question)}


def _coverage(question: Question) -> dict[str, Any]:
    """The coverage asked for; nothing is guaranteed before enough labels came in."""
    if question.coverage is None:
        return {}
    return {"coverage": question.coverage, "guaranteed": False}
