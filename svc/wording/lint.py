"""All faults of all questions of a request."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from svc.questions import Question
from svc.wording.faults import FAULTS
from svc.wording.wording import Wording

# Raises where nobody waits for more.
Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one question: where it is and what, why it hurts, what to write instead."""

    question: str
    code: str
    where: str
    what: str
    why: str
    instead: str


def lint(
    questions: Mapping[str, Question],
    most: int | None = None,
    chars: float = math.inf,
    check: Check = lambda: None,
) -> list[Finding]:
    """What is found in checked questions, in their order.

    At most the first `most`, whose names and places have `chars` characters together, and one in
    any case. `check` is called again and again, and may raise to end it.
    """
    wordings: dict[str, Wording] = {}
    wordings.update((key, Wording(key, asked, wordings)) for key, asked in questions.items())
    findings: list[Finding] = []
    for finding in islice(chain.from_iterable(_of(one, check) for one in wordings.values()), most):
        chars -= len(finding.question) + len(finding.where) + len(finding.what)
        if findings and chars < 0:
            break
        findings.append(finding)
    return findings


def _of(wording: Wording, check: Check) -> Iterator[Finding]:
    for fault in FAULTS.values():
        check()
        for spot in fault.look(wording):
            yield Finding(wording.key, fault.code, spot.where, spot.what, fault.why, fault.instead)
