"""What a reviewer can say to a question in a terminal: keys, numbers, names, values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from svc.jsontext import JsonObject, finite
from svc.phrases import printable
from svc.questions import ESCAPE, Question

# Options that a single key can choose.
KEYS = 9
# What says in a line that none of several options applies, and that there is no value.
NOTHING = "-"
FITS_NONE = "none of the other options fits"
_SEVERAL = "options"
_YES_NO = "yes_no"


@dataclass(frozen=True, slots=True)
class Option:
    """A label to choose: how it is called, its words, and a letter where it has one."""

    label: Any
    name: str
    words: str = ""
    letter: str = ""


class Sayable:
    """The labels of a question, and what a reviewer types for them."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.options = _options(question)
        self.several = question.display == _SEVERAL
        # Whether one key is enough for an answer.
        self.by_key = 0 < len(self.options) <= KEYS

    def named(self, text: str) -> Option | None:
        """The option of exactly this name."""
        return next((one for one in self.options if one.name == text), None)

    def by_letter(self, key: str) -> Option | None:
        """The option on a key."""
        if key.isdecimal() and 0 < int(key) <= len(self.options):
            return self.options[int(key) - 1]
        return next((one for one in self.options if one.letter and one.letter == key.lower()), None)

    def parsed(self, line: str) -> Any:
        """The label that a line says. Raises `ValueError`."""
        if self.several:
            chosen = [] if line == NOTHING else self._chosen(line)
            return self._checked(list(dict.fromkeys(one.label for one in chosen)))
        if self.options:
            return self._one(line).label
        if line == NOTHING:
            return self._checked(None)
        return self._checked(line if self._question.type == "text" else _number(line))

    def words(self, label: Any) -> str:
        """A label in words."""
        if label is None:
            return "no value"
        if isinstance(label, list):
            return ", ".join(map(printable, label)) or "none of them"
        found = next((one.name for one in self.options if one.label == label), str(label))
        return printable(found)

    def answered(self, answer: JsonObject) -> str:
        """The answer of a model in words, with its confidence."""
        field = type(self._question).answer_schema["required"][0]
        value, sure = answer.get(field), answer.get("confidence")
        if self._question.display == _YES_NO and value is not None:
            value, sure = value >= 0.5, max(value, 1 - value)
        elif self._question.display == "level":
            shares = answer["probabilities"]
            # Some routes answer with an object by level in place of a list.
            by_level = list(shares.values() if isinstance(shares, dict) else shares)
            value = by_level.index(max(by_level))
        return self.words(value) + ("" if sure is None else f", {sure:.1%}")

    def _one(self, text: str) -> Option:
        """The option of a name, a number, a letter, or a part of one name alone, in this order."""
        found = self.named(text) or self.by_letter(text)
        if found is not None:
            return found
        parts = [one for one in self.options if text and text.lower() in one.name.lower()]
        if len(parts) != 1:
            how = "fits several options" if parts else "is no option"
            raise ValueError(f"{printable(text)!r} {how}")
        return parts[0]

    def _chosen(self, text: str) -> list[Option]:
        """The options that a text names, whose names may have the commas and blanks between."""
        between = "," if "," in text else None
        parts = list(filter(None, map(str.strip, text.split(between))))
        if parts and self._is_meant_whole(text, parts):
            return [self._one(text)]
        if between is None and len(parts) == 1:
            return [self._one(parts[0])]
        return [one for part in parts for one in self._chosen(part)]

    def _is_meant_whole(self, text: str, parts: Sequence[str]) -> bool:
        """Whether a text with commas or blanks is a name, or a part of one that is no list."""
        if self.named(text):
            return True
        is_list = all(self.named(part) or self.by_letter(part) for part in parts)
        return not is_list and any(text.lower() in one.name.lower() for one in self.options)

    def _checked(self, label: Any) -> Any:
        self._question.check_label(label)
        return label


def _options(question: Question) -> Sequence[Option]:
    definition = json.loads(question.definition_json)
    if question.display == _YES_NO:
        return [Option(True, "yes", letter="y"), Option(False, "no", letter="n")]
    if "levels" in definition:
        levels = enumerate(definition["levels"])
        return [Option(level, words, f"level {level}") for level, words in levels]
    options = [Option(key, key, words) for key, words in definition.get("options", {}).items()]
    return [*options, *([Option(ESCAPE, ESCAPE, FITS_NONE)] if definition.get("escape") else [])]


def _number(line: str) -> float:
    try:
        number = finite(json.loads(line))
    except ValueError:
        number = None
    if number is None:
        raise ValueError("must be a number")
    return number
