"""All faults of all questions of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from svc.questions import Question
from svc.wording.faults import FAULTS
from svc.wording.wording import Wording


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one question: where it is and what, why it hurts, what to write instead."""

    question: str
    code: str
    where: str
    what: str
    why: str
    instead: str


def lint(questions: Mapping[str, Question]) -> list[Finding]:
    """What is found in checked questions, in their order."""
    return [finding for key in questions for finding in _of(key, questions)]


def _of(key: str, questions: Mapping[str, Question]) -> Iterator[Finding]:
    wording = Wording(key, questions[key], questions)
    for fault in FAULTS.values():
        for spot in fault.look(wording):
            yield Finding(key, fault.code, spot.where, spot.what, fault.why, fault.instead)
