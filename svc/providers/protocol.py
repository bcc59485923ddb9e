"""What a protocol is: how one kind of server is asked, and how its reply is read.

A new protocol is one file beside this one and one line in `protocols.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from svc.jsontext import JsonObject
from svc.providers.catalog import Provider
from svc.providers.replies import Completion
from svc.providers.traits import Traits
from svc.questions import PlainQuestion

# How far from 1 rounding may push the sum of a server's probabilities.
SUM_SLACK = 0.02

CallT = TypeVar("CallT")


@dataclass(frozen=True, slots=True)
class DecisionCall:
    """Questions for a decision server, which answers with probabilities and writes no text.

    `deny_data_collection` stands for `privacy: strict`.
    """

    questions: tuple[PlainQuestion, ...]
    state: str
    images: tuple[str, ...] = ()
    deny_data_collection: bool = False

    @property
    def words(self) -> Any:
        """All parts of the call that a provider's error may echo."""
        questions = [(one.instructions, one.options) for one in self.questions]
        return [self.state, questions, addresses_of(self.images)]

    @property
    def size(self) -> int:
        """About how many bytes the state and the images have."""
        return sum(map(bytes_of, (self.state, *self.images)))


def addresses_of(images: Sequence[str]) -> list[str]:
    """The addresses of images that are no images themselves."""
    return [url for url in images if not url.startswith("data:")]


def bytes_of(text: str) -> int:
    """At most so many bytes a text has in UTF-8, without looking at its letters."""
    return len(text) if text.isascii() else 4 * len(text)


class Protocol(ABC, Generic[CallT]):
    """One kind of server; `CallT` is the call that it takes.

    Its `path` follows the base URL. `counts` are what its `usage` calls input and output tokens.
    """

    path: ClassVar[str]
    counts: ClassVar[tuple[str, str]] = ("input_tokens", "output_tokens")

    @abstractmethod
    def body(self, provider: Provider, name: str, call: CallT, traits: Traits) -> JsonObject:
        """The JSON body that asks the provider's model `name`.

        Raises `Unanswerable` for what such a server has no way to answer.
        """

    @abstractmethod
    def read(self, payload: Any, call: CallT) -> Completion:
        """The completion in the decoded body of a reply that is no error.

        Raises a `ProviderError`.
        """


def share(value: Any) -> float:
    """A probability out of a decision server's reply. Raises `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a decision server gave a probability that is not between 0 and 1")
    return float(value)


def distribution(
    question: PlainQuestion, keys: Sequence[Any], listed: Mapping[Any, Any]
) -> dict[int, float]:
    """The probability of each label, by its position; `keys` are those of the options shown.

    Raises `ValueError` unless exactly these have a probability and all of them sum to 1.
    """
    if set(listed) != set(keys) or any(isinstance(key, bool) for key in listed):
        raise ValueError("not one probability for each label")
    shares = {
        place: share(listed[key]) for place, key in zip(question.positions, keys, strict=True)
    }
    if abs(math.fsum(shares.values()) - 1) > SUM_SLACK:
        raise ValueError("probabilities that do not sum to 1")
    return shares
