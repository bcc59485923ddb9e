"""Faults of examples: what a model would learn from them by mistake."""

from __future__ import annotations

from collections.abc import Iterator

from svc.wording.text import plain, shown
from svc.wording.wording import Spot, Wording


def one_sided(wording: Wording) -> Iterator[Spot]:
    """Examples that all have the same answer."""
    question = wording.question
    labels = {question.named(example.label) for example in question.examples}
    if question.tallies and len(question.examples) > 1 and len(labels) == 1:
        yield Spot("examples", f"all {len(question.examples)} have the label {labels.pop()}")


def contradicting(wording: Wording) -> Iterator[Spot]:
    """The same state with two different labels."""
    seen: dict[str, str] = {}
    for place, example in enumerate(wording.question.examples):
        state, label = plain(example.state_text), wording.question.named(example.label)
        if seen.setdefault(state, label) != label:
            yield Spot(f"examples[{place}]", f"{shown(example.state_text)} has two labels")
