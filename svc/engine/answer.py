"""From a reading to the answer that the caller sees."""

from __future__ import annotations

from typing import Any

from svc.questions import Question, Reading


def answer(question: Question, reading: Reading) -> dict[str, Any]:
    """The answer's fields; `calibrated` says whether a calibrator shaped its probabilities."""
    return {**question.answer(reading), "calibrated": False}
