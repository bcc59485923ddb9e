"""Faults between questions: answers that are seen, tested, or asked for twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from svc.questions import Condition
from svc.wording.text import gist, shown
from svc.wording.wording import INSTRUCTIONS, Spot, Wording

# The answers that a question waits for are looked at up to here, where there may be thousands.
_DEPENDENCIES = 20

_EARLIER = re.compile(r"\b(?:answers?|answered|earlier|previous|first question)\b")


def unmentioned_dependency(wording: Wording) -> Iterator[Spot]:
    """An answer that the question waits for and does not speak of, among the first of them."""
    if not wording.question.depends_on or _EARLIER.search(wording.plain):
        return
    said = gist(wording.plain).content
    for key in wording.question.depends_on[:_DEPENDENCIES]:
        if not said & _topic(key, wording.others):
            yield Spot("depends_on", f"the instructions say nothing of {shown(key)}")


def impossible_condition(wording: Wording) -> Iterator[Spot]:
    """A condition on an answer that the other question never gives."""
    question = wording.question
    for condition in question.when:
        yield from _impossible("when", condition, wording)
    for place, rule in enumerate(question.rules):
        for condition in rule.conditions:
            yield from _impossible(f"rules[{place}]", condition, wording)


def repeated_question(wording: Wording) -> Iterator[Spot]:
    """The exact question of another key once more."""
    for key, other in wording.others.items():
        if key == wording.key:
            return
        if other.question.digest == wording.question.digest:
            yield Spot(INSTRUCTIONS, f"{shown(key)} asks exactly the same")
            return


def _topic(key: str, wordings: Mapping[str, Wording]) -> frozenset[str]:
    """What a question is about; of one that is not there, its key alone."""
    return wordings[key].topic if key in wordings else gist(key.replace("_", " ")).content


def _impossible(where: str, condition: Condition, wording: Wording) -> Iterator[Spot]:
    asked = wording.others.get(condition.question or "")
    if asked is None or condition.operator not in ("equals", "any_of"):
        return
    wanted: Sequence[object] = (
        condition.operand if condition.operator == "any_of" else [condition.operand]
    )
    for value in wanted:
        try:
            asked.question.check_label(value)
        except ValueError:
            yield Spot(where, f"{shown(str(value))} is no answer to {condition.field}")
            return
