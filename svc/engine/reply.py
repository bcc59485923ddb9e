"""From a model's reply to one reading per question; one that cannot be read is never guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from svc.engine.label_reading import without_thought
from svc.engine.prompt import member
from svc.jsontext import JsonObject
from svc.questions import BOTH, LabelLine, LabelQuestion, Question, Reading, Unreadable

JSON_STARTS = 50  # places tried before a reply counts as holding no JSON
JSON_CHARS = 262_144  # of a reply that are looked at: many times what a model may write


def wanted_labels(questions: Sequence[Question], backwards: bool) -> list[tuple[str, ...]]:
    """The labels of each line of a reply to all questions."""
    return [labels for question in questions for _, labels in question.reply_lines(backwards)]


def assembled(
    lines: Sequence[LabelLine], questions: Sequence[LabelQuestion], backwards: bool
) -> list[Reading]:
    """The readings of all questions, from the lines of all their labels. Raises `Unreadable`."""
    left = iter(lines)
    return [
        question.read_lines([next(left) for _ in question.reply_lines(backwards)], backwards)
        for question in questions
    ]


def decided(lines: Sequence[LabelLine], questions: Sequence[LabelQuestion]) -> list[Reading]:
    """The readings of what a decision server answered, whose positions are the original ones."""
    return assembled(lines, questions, backwards=False)


def read_json(text: str, questions: Sequence[Question], backwards: bool) -> list[Reading]:
    """Read a verbal reply, also out of a code fence, talk or behind thought.

    All probabilities of a reply are on one scale, parts of 1 or percentages. Raises `Unreadable`.
    """
    values = list(_json_values(without_thought(text[:JSON_CHARS])))
    rows = list(zip(questions, _members(values, questions, backwards), strict=True))
    scales = BOTH
    for question, found in rows:
        scales &= question.stated(found, backwards).scales
    if not scales:
        raise Unreadable("the reply's probabilities are on no scale that is known")
    return [question.read_member(found, backwards, min(scales)) for question, found in rows]


def _members(values: Sequence[Any], questions: Sequence[Question], backwards: bool) -> list[Any]:
    """The member of each question, None where the reply has none.

    Of several objects the last counts: one before may be quoted from the input.
    """
    names = [member(index) for index in range(len(questions))]
    for value in reversed(values):
        for candidate in _candidates(value):
            lowered = {str(name).strip().casefold(): one for name, one in candidate.items()}
            if not lowered.keys().isdisjoint(names):
                return [lowered.get(name) for name in names]
    for value in reversed(values) if len(questions) == 1 else ():
        for alone in (value, *_candidates(value)):
            if _answers(questions[0], alone, backwards):
                return [alone]  # the member, without the object around it
    raise Unreadable("the reply holds no JSON object with the answers")


def _candidates(value: Any) -> list[JsonObject]:
    """The objects that may be the reply: the value, its entries, or the only one inside it."""
    entries = value if isinstance(value, list) else [value]
    objects = [entry for entry in entries[:JSON_STARTS] if isinstance(entry, dict)]
    inner = [next(iter(one.values())) for one in objects if len(one) == 1]
    return [*objects, *(one for one in inner if isinstance(one, dict))]


def _answers(question: Question, value: Any, backwards: bool) -> bool:
    try:
        return question.read_member(value, backwards).answered
    except Unreadable:
        return False


def _json_values(text: str) -> Iterator[Any]:
    """The JSON objects and lists in the text, one after the other."""
    decoder = json.JSONDecoder()
    start, wasted = _next_start(text, 0), 0
    for _ in range(JSON_STARTS):
        if start < 0 or wasted > JSON_CHARS:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            wasted += error.pos - start
            end = start + 1
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = _next_start(text, end)


def _next_start(text: str, at: int) -> int:
    """Where the next object or list begins, -1 where none does."""
    starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
    return min(starts, default=-1)
