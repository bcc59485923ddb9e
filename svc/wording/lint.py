"""All faults of all questions of a request."""

from __future__ import annotations

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
    questions: Mapping[str, Question], most: int | None = None, check: Check = lambda: None
) -> list[Finding]:
    """What is found in checked questions, in their order; at most the first `most`.

    `check` is called again and again, and may raise to end it.
    """
    wordings: dict[str, Wording] = {}
    wordings.update((key, Wording(key, asked, wordings)) for key, asked in questions.items())
    return list(islice(chain.from_iterable(_of(one, check) for one in wordings.values()), most))


def _of(wording: Wording, check: Check) -> Iterator[Finding]:
    for fault in FAULTS.values():
        check()
        for spot in fault.look(wording):
            yield Finding(wording.key, fault.code, spot.where, spot.what, fault.why, fault.instead)
