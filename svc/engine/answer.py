"""From a reading to the answer that the caller sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.engine.knowledge import NOTHING_KNOWN, Knowledge
from svc.questions import Question, Reading
from svc.questions.labels import DECIMALS

SKIPPED = {"skipped": True}


def confidence(knowledge: Knowledge, question: Question, reading: Reading) -> float:
    """How sure the calibrated reading is of its top answer, as the caller would see it."""
    return round(question.confidence(knowledge.calibrated(question, reading)), DECIMALS)


def by_models(
    knowledge: Knowledge, question: Question, reading: Reading, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer that models gave; `extra` are the fields that the plan adds."""
    return {
        **question.answer(knowledge.calibrated(question, reading)),
        "calibrated": knowledge.calibrator(question) is not None,
        **extra,
        **knowledge.coverage(question, reading),
    }


def by_rule(question: Question, label: Any, rule: int) -> dict[str, Any]:
    """The answer that a rule gave: all probability on its label, and nothing learned of it."""
    certain = question.certain(label)
    return {
        **question.answer(certain),
        "confidence": 1.0,
        "calibrated": False,
        "rule": rule,
        **NOTHING_KNOWN.coverage(question, certain),
    }
