"""The same question put otherwise: denied, as twins, in other words, in the other option order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from svc.jsontext import JsonObject
from svc.questions import ESCAPE, EVEN, Noul, Question

# Other words for the same question, where none are given.
TEMPLATES = ("Read the input, then answer this: {}", "About the input: {}")
DENIED_QUESTION = "Is “no” the right answer to this question? {}"
DENIED_STATEMENT = "Is this statement false? {}"
TWIN = "{}\nIs this the right answer? {}"
# Fields that say when a question is asked or what becomes of its answer, not how it is put.
_APART = ("when", "rules", "depends_on", "min_confidence", "coverage", "coverage_per")


class Change(StrEnum):
    """What is changed about a question."""

    NOTHING = "as it stands"
    POLARITY = "polarity"
    TWINS = "yes/no twins"
    WORDING = "wording"
    ORDER = "option order"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: the top one as a label, and the probabilities as they are stored."""

    top: Any
    p: tuple[float, ...]


def as_said(said: Said) -> Said:
    """The answer as it was given."""
    return said


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to put a question; `back` makes of its answer one to the question as it stands.

    The `back` of a twin gives the probability of its option alone, with the option's key.
    """

    change: Change
    name: str
    fields: JsonObject
    back: Callable[[Said], Said] = as_said


@dataclass(frozen=True, slots=True)
class Words:
    """Instructions that mean the same, and those that mean the opposite; empty where not given."""

    same: tuple[str, ...] = ()
    denied: str = ""


def variants(fields: Mapping[str, Any], question: Question, words: Words) -> list[Variant]:
    """The question as it stands first, then every other way that its type allows."""
    asked = {name: value for name, value in fields.items() if name not in _APART}
    return [
        Variant(Change.NOTHING, Change.NOTHING, asked),
        *_denied(asked, question, words),
        *_twins(asked, question),
        *_wordings(asked, words),
        *_reversed(asked),
    ]


def joined(question: Question, twins: Sequence[Said]) -> Said:
    """One answer made of those of all twins: the likeliest option, or that none fits."""
    options = dict(zip((said.top for said in twins), (said.p[0] for said in twins), strict=True))
    best = max(options, key=options.__getitem__)
    none_fits = options[best] < EVEN and question.definition()["escape"]
    return Said(ESCAPE if none_fits else best, tuple(options.values()))


def _denied(asked: JsonObject, question: Question, words: Words) -> Iterator[Variant]:
    if not question.sides:
        return
    template = DENIED_QUESTION if "?" in question.instructions else DENIED_STATEMENT
    denied = words.denied or template.format(question.instructions)
    changed = {**asked, "instructions": denied, **_relabelled(asked, lambda label: not label)}
    yield Variant(
        Change.POLARITY, "denied", changed, lambda said: Said(not said.top, (1 - said.p[0],))
    )


def _twins(asked: JsonObject, question: Question) -> Iterator[Variant]:
    """One for each option, in the order in which their probabilities are stored."""
    if "escape" not in question.definition():
        return
    for key, description in sorted(asked["options"].items()):
        yield _twin(asked, key, description)


def _twin(asked: JsonObject, key: str, description: str) -> Variant:
    shown = f"{key}: {description}" if description.strip() else key
    fields: JsonObject = {
        "type": Noul.type,
        "instructions": TWIN.format(asked["instructions"], shown),
        **_relabelled(asked, lambda label: label == key),
    }
    if asked.get("think"):
        fields["think"] = True
    return Variant(Change.TWINS, key, fields, lambda said: Said(key, said.p))


def _wordings(asked: JsonObject, words: Words) -> Iterator[Variant]:
    templated = (template.format(asked["instructions"]) for template in TEMPLATES)
    for number, text in enumerate(words.same or templated, 2):
        yield Variant(Change.WORDING, f"wording {number}", {**asked, "instructions": text})


def _reversed(asked: JsonObject) -> Iterator[Variant]:
    if "options" in asked and len(asked["options"]) > 1:
        options = dict(reversed(asked["options"].items()))
        yield Variant(Change.ORDER, "reversed", {**asked, "options": options})
    if "levels" in asked:
        last = len(asked["levels"]) - 1
        fields = {
            **asked,
            "levels": asked["levels"][::-1],
            **_relabelled(asked, lambda level: last - level),
        }
        yield Variant(
            Change.ORDER, "reversed", fields, lambda said: Said(last - said.top, said.p[::-1])
        )


def _relabelled(asked: JsonObject, label: Callable[[Any], Any]) -> JsonObject:
    """The examples with the labels that they have in another way to put the question."""
    shown = asked.get("examples")
    if not shown:
        return {}
    return {"examples": [{**one, "label": label(one["label"])} for one in shown]}
