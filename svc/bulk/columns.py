"""What the columns of answers hold, and answers as they stand in them."""

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


def held(fields: Mapping[str, Kind], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values as columns of these fields hold them, which every engine takes; None for no value.

    Raises `BadRow` for what no column holds.
    """
    return {
        name: None if values.get(name) is None else _held(name, kind, values[name])
        for name, kind in fields.items()
    }


def answer_of(question: Question, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An answer as its column holds it; None for a question that was skipped.

    Raises `BadRow` for what no column holds.
    """
    if fields.get("skipped"):
        return None
    answer = held(FIELDS[question.type], fields)
    if "abstain" not in answer:
        return answer
    return {**answer, "abstain": bool(answer["abstain"])}


def kept_answer(question: Question, kept: Any) -> Mapping[str, Any] | None:
    """What was kept of an answer as its column holds it; None for a question that was skipped.

    Raises `BadRow` for what has other fields, or values that no column holds.
    """
    if kept is None:
        return None
    columns = FIELDS[question.type]
    if not isinstance(kept, dict) or kept.keys() != columns.keys():
        raise BadRow("what was kept is no answer of this type")
    return held(columns, kept)


def plain(text: str) -> str:
    """A text with question marks where UTF-8 has nothing for it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _held(name: str, kind: Kind, value: Any) -> Any:
    try:
        return _as(kind, value)
    except (OverflowError, TypeError):
        why = f"unknown: {name} of an answer is of another type than the service has"
        raise BadRow(why) from None


def _as(kind: Kind, value: Any) -> Any:
    """A value that is not null as a column of a kind holds it.

    Raises `BadRow`, `TypeError`, and `OverflowError` for a number that no double comes near.
    """
    match kind, value:
        case "flag", bool():
            return value
        case _, bool():
            # To Python it is a whole number, to the engines not.
            raise TypeError
        case "text", str() if value == plain(value):
            return value
        case "number", int() | float():
            # Arrow refuses whole numbers that are not exactly a double.
            return float(value)
        case "integer", int() if value in _INTEGERS:
            return value
        case "integer", int():
            why = "a whole number was found that a column of 64 bits cannot hold"
            raise BadRow(f"too_large: {why}")
        case "texts", list():
            return [_as("text", one) for one in value]
        case "numbers", list():
            return [_as("number", one) for one in value]
        case "numbers by text", dict():
            return {_as("text", key): _as("number", one) for key, one in value.items()}
    raise TypeError
