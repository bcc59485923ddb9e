"""A question as the faults look at it, and what a fault is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from svc.lazy import lazy
from svc.questions import Question
from svc.wording.text import asked, gist, plain

INSTRUCTIONS = "instructions"


class Spot(NamedTuple):
    """Where a fault is, as a path in the question, and what it is there."""

    where: str
    what: str


@dataclass(frozen=True)
class Wording:
    """One question among those of its request; what its type does not have is empty."""

    key: str
    question: Question
    # Those of the whole request by their keys, this one among them.
    others: Mapping[str, Wording]

    @property
    def instructions(self) -> str:
        return self.question.instructions

    @lazy
    def plain(self) -> str:
        """The instructions in lower case on one line."""
        return plain(self.instructions)

    @lazy
    def topic(self) -> frozenset[str]:
        """What it is about, by the words of its key and of all its texts."""
        texts = [self.key.replace("_", " "), self.instructions, *self.question.own_texts]
        return gist(" ".join(texts)).content

    @lazy
    def asked(self) -> list[str]:
        """The sentences of the instructions that end in a question mark."""
        return asked(self.instructions)

    @lazy
    def definition(self) -> Mapping[str, Any]:
        """The fields that make it the exact question that it is."""
        return self.question.definition()

    @property
    def options(self) -> Mapping[str, str]:
        """Option key to description."""
        found: Mapping[str, str] = self.definition.get("options", {})
        return found

    @property
    def levels(self) -> Sequence[str]:
        """Lowest first."""
        found: Sequence[str] = self.definition.get("levels", ())
        return found

    @property
    def exclusive(self) -> bool:
        """Whether exactly one of its options is the answer."""
        return "escape" in self.definition

    @property
    def escapes(self) -> bool:
        """Whether it has the option that none of the others fits."""
        return bool(self.definition.get("escape"))

    @property
    def answers(self) -> int:
        """How many answers share one probability; 0 where there are no such answers."""
        return len(self.options) + self.escapes if self.exclusive else len(self.levels)

    @property
    def yes_no(self) -> bool:
        return bool(self.question.sides)

    @property
    def takes_words(self) -> bool:
        """Whether its answer is words of the input."""
        return "max_length" in self.definition

    @property
    def takes_number(self) -> bool:
        """Whether its answer is a number of the input."""
        return self.question.extracts and not self.takes_words

    @property
    def threshold(self) -> float | None:
        """From which probability on an option is selected."""
        found: float | None = getattr(self.question, "threshold", None)
        return found


Look = Callable[[Wording], Iterable[Spot]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: why it hurts, what to write instead, and how it is found."""

    code: str
    why: str
    instead: str
    look: Look
