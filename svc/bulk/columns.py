"""What the columns of answers hold, and whether an answer can stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from svc.client import Choice, Integer, Multi, Number, Question, Score, Text, YesNo

# The kinds of values that a column holds, for which each engine has its own types.
Kind = Literal["text", "number", "integer", "flag", "texts", "numbers", "numbers by text"]

# Columns of every row, beside one for each question.
ID, COST, ERROR = "decision_id", "cost_usd", "error"
OF_ROWS: Mapping[str, Kind] = {ID: "text", COST: "number", ERROR: "text"}

_SURE: Mapping[str, Kind] = {"confidence": "number", "calibrated": "flag"}
_ABSTAINS: Mapping[str, Kind] = {"abstain": "flag"}
_SET: Mapping[str, Kind] = {"set": "texts"}
_BY_KEY: Mapping[str, Kind] = {"probabilities": "numbers by text"}

# The fields of an answer that its column holds, by the type of the question. Names are those of
# the service.
FIELDS: Mapping[str, Mapping[str, Kind]] = {
    Choice.type: {"choice": "text", **_BY_KEY, **_SURE, **_ABSTAINS, **_SET},
    Score.type: {"score": "number", "probabilities": "numbers", **_SURE, **_ABSTAINS},
    YesNo.type: {"noul": "number", "calibrated": "flag", **_SET},
    Multi.type: {"selected": "texts", **_BY_KEY, "calibrated": "flag"},
    Text.type: {"value": "text", **_SURE, **_ABSTAINS},
    Number.type: {"value": "number", **_SURE, **_ABSTAINS},
    Integer.type: {"value": "integer", **_SURE, **_ABSTAINS},
}

_INTEGERS = range(-(2**63), 2**63)


class BadRow(Exception):
    """A row that cannot be sent or held; the message says why, without what is in the row."""


def answer_of(question: Question, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An answer as its column holds it; None for a question that was skipped.

    Raises `BadRow` for what no column holds.
    """
    if fields.get("skipped"):
        return None
    answer = {name: fields.get(name) for name in FIELDS[question.type]}
    if "abstain" in answer:
        answer["abstain"] = bool(answer["abstain"])
    for name, kind in FIELDS[question.type].items():
        if answer[name] is not None and not _is_of(kind, answer[name]):
            raise BadRow(f"unknown: {name} of an answer is of another type than the service has")
    if question.type == Integer.type and (answer["value"] or 0) not in _INTEGERS:
        raise BadRow("too_large: a whole number was found that a column of 64 bits cannot hold")
    return answer


def plain(text: str) -> str:
    """A text with question marks where UTF-8 has nothing for it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def has_fields(answer: Any, fields: Mapping[str, Kind]) -> bool:
    """Whether what was kept of an answer has these fields and no others."""
    return isinstance(answer, dict) and answer.keys() == fields.keys()


def _is_of(kind: Kind, value: Any) -> bool:
    """Whether a value that is not null can stand in a column of a kind."""
    match kind:
        case "text":
            return _is_text(value)
        case "flag":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int)
        case "number":
            return _is_number(value)
        case "texts":
            return isinstance(value, list) and all(map(_is_text, value))
        case "numbers":
            return isinstance(value, list) and all(map(_is_number, value))
        case "numbers by text":
            return isinstance(value, dict) and all(
                _is_text(key) and _is_number(one) for key, one in value.items()
            )


def _is_text(value: Any) -> bool:
    """Whether it is a text that UTF-8 can hold."""
    return isinstance(value, str) and value == plain(value)


def _is_number(value: Any) -> bool:
    """Whether it is a number that 64 bits can hold."""
    return isinstance(value, float) or (isinstance(value, int) and value in _INTEGERS)
