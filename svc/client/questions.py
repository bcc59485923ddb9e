"""Typed questions, as a program writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

# A JSON object as the service takes it, or gives it.
JsonObject = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """One typed question about a piece of input."""

    type: ClassVar[str]

    instructions: str

    def body(self) -> JsonObject:
        """The question object of `POST /v1/decide`."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        more = given.pop("more") or {}
        return {"type": self.type, **{k: v for k, v in given.items() if v is not None}, **more}


@dataclass(frozen=True)
class Choice(Question):
    """Which of some options; the answer has `choice`.

    `options` are keys with descriptions, or keys alone. Here and in all other types, `more` holds
    further fields of the question object, such as `when`, `rules` or `examples`.
    """

    type = "choice"

    options: Mapping[str, str] | Sequence[str]
    escape: bool | None = None
    min_confidence: float | None = None
    coverage: float | None = None
    more: Mapping[str, Any] | None = None

    def body(self) -> JsonObject:
        return {**super().body(), "options": _described(self.options)}


@dataclass(frozen=True)
class Score(Question):
    """How much, by levels that are described lowest first; the answer has `score`."""

    type = "score"

    levels: Sequence[str]
    min_confidence: float | None = None
    more: Mapping[str, Any] | None = None

    def body(self) -> JsonObject:
        return {**super().body(), "levels": list(self.levels)}


@dataclass(frozen=True)
class YesNo(Question):
    """Yes or no; the answer has `yes`, and `noul`, the probability of yes."""

    type = "noul"

    coverage: float | None = None
    more: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Multi(Question):
    """Which of some options, any number of them; the answer has `selected`."""

    type = "multi"

    options: Mapping[str, str] | Sequence[str]
    threshold: float | None = None
    coverage: float | None = None
    more: Mapping[str, Any] | None = None

    def body(self) -> JsonObject:
        return {**super().body(), "options": _described(self.options)}


@dataclass(frozen=True)
class Text(Question):
    """A text that stands in the input; the answer has `value`."""

    type = "text"

    max_length: int | None = None
    nullable: bool | None = None
    min_confidence: float | None = None
    more: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Number(Question):
    """A number that the input tells; the answer has `value`."""

    type = "number"

    min: float | None = None
    max: float | None = None
    nullable: bool | None = None
    min_confidence: float | None = None
    more: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Integer(Question):
    """A whole number that the input tells; the answer has `value`."""

    type = "integer"

    min: int | None = None
    max: int | None = None
    nullable: bool | None = None
    min_confidence: float | None = None
    more: Mapping[str, Any] | None = None


def _described(options: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    return dict(options) if isinstance(options, Mapping) else dict.fromkeys(options, "")
