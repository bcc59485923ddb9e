"""Decisions as a program reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Label = str | bool | int | float | list[str] | None
GiveFeedback = Callable[[str, Mapping[str, Label]], None]


class Answer:
    """The answer to one question.

    Reading what an answer of its type does not have raises `AttributeError`. `fields` holds
    everything that the service said.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    @property
    def choice(self) -> str:
        """The key of the chosen option."""
        return str(self._field("choice"))

    @property
    def score(self) -> float:
        """The expected level; 0 is the lowest."""
        return float(self._field("score"))

    @property
    def noul(self) -> float:
        """The probability of yes."""
        return float(self._field("noul"))

    @property
    def yes(self) -> bool:
        """Whether yes is at least as probable as no."""
        return self.noul >= 0.5

    @property
    def selected(self) -> list[str]:
        """The keys of the selected options."""
        return list(self._field("selected"))

    @property
    def value(self) -> Any:
        """The value that was read from the input; None where there is none."""
        return self._field("value")

    @property
    def confidence(self) -> float:
        """The probability that the answer is right."""
        if "noul" in self.fields:
            return max(self.noul, 1 - self.noul)
        return float(self._field("confidence"))

    @property
    def probabilities(self) -> Any:
        """The probability of each option by its key, or of each level in order."""
        return self._field("probabilities")

    @property
    def calibrated(self) -> bool:
        """Whether labels have shaped the probabilities."""
        return bool(self.fields.get("calibrated", False))

    @property
    def abstains(self) -> bool:
        """Whether the confidence is below the question's `min_confidence`."""
        return bool(self.fields.get("abstain", False))

    @property
    def skipped(self) -> bool:
        """Whether the question was not asked, because its `when` did not match."""
        return bool(self.fields.get("skipped", False))

    @property
    def set(self) -> list[str] | None:
        """The options that hold the true one as often as `coverage` says; None without labels."""
        found = self.fields.get("set")
        return None if found is None else list(found)

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            there = ", ".join(self.fields)
            raise AttributeError(f"the answer has no {name}; it has {there}")
        return self.fields[name]

    def __repr__(self) -> str:
        return f"Answer({dict(self.fields)!r})"


class Decision:
    """The answers to all questions of a request, by key or as attributes.

    `fields` holds everything that the service said.
    """

    def __init__(self, fields: Mapping[str, Any], give: GiveFeedback) -> None:
        """`give` sends labels for the decision of an id."""
        self.fields = fields
        self._give = give
        self._id, self._model = str(fields["id"]), str(fields["model"])
        self._cost_usd = float(fields["cost_usd"])
        self._answers = {key: Answer(dict(one)) for key, one in fields["answers"].items()}

    @property
    def id(self) -> str:
        """The id by which the decision can be found and labelled later."""
        return self._id

    @property
    def model(self) -> str:
        """The ids of the models that answered."""
        return self._model

    @property
    def cost_usd(self) -> float:
        """What the models cost, in dollars."""
        return self._cost_usd

    @property
    def answers(self) -> Mapping[str, Answer]:
        """The answers by question key, in the order of the request."""
        return self._answers

    def __getitem__(self, key: str) -> Answer:
        return self._answers[key]

    def __getattr__(self, key: str) -> Answer:
        answers = self.__dict__.get("_answers", {})
        if key not in answers:
            raise AttributeError(f"the decision has no answer {key}; it has {', '.join(answers)}")
        found: Answer = answers[key]
        return found

    def feedback(self, labels: Mapping[str, Label] | None = None, /, **by_key: Label) -> None:
        """Tell the true answers to some questions, all or none of them.

        A label is an option's key, a level's index, a boolean, a list of keys, or the value.
        Raises `ServiceError`.
        """
        self._give(self.id, {**(labels or {}), **by_key})

    def __repr__(self) -> str:
        return f"Decision({self.id}, {self._answers!r})"
