"""From a reading to the answer that the caller sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.engine.plans import Finding
from svc.learning import Knowledge
from svc.questions import Question
from svc.records import Answer, Source


def by_models(
    knowledge: Knowledge, question: Question, finding: Finding, extra: Mapping[str, Any]
) -> Answer:
    """The answer that models gave, calibrated by the project's labels, with the `extra` fields."""
    reading = knowledge.calibrated(question, finding)
    fields = {
        "type": question.type,
        **question.answer(reading),
        "calibrated": knowledge.calibrator(question, finding) is not None,
        **finding.extra,
        **knowledge.coverage(question, finding),
        **extra,
    }
    return Answer(
        Source.MODELS,
        fields,
        top=question.top(reading),
        confidence=question.confidence(reading),
        abstains=question.abstains(reading),
        extracted=question.extracts,
    )


def by_rule(question: Question, label: Any, extra: Mapping[str, Any]) -> Answer:
    """The answer that a rule gave: all probability on its label, and nothing guaranteed."""
    fields = {
        "type": question.type,
        **question.answer(question.certain(label)),
        "confidence": 1.0,
        "calibrated": False,
        **question.unguaranteed,
        **extra,
    }
    return Answer(Source.RULE, fields, label, 1.0, extracted=question.extracts)
