"""Reads a model's reply into one reading for each question; it never guesses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

from svc import limits
from svc.engine.prompt import member
from svc.jsontext import JsonObject, near_float
from svc.providers import without_thought
from svc.questions import (
    BOTH,
    LabelLine,
    LabelQuestion,
    Question,
    Reading,
    Unreadable,
    count_entries,
)

# How many places of a reply are tried that begin like JSON. One with more is not read: what comes
# before them may be quoted, and the answer may come behind them.
JSON_STARTS = 400

# How many of the last values in a reply may be the only answer. Of a value so many entries may be
# the object with the answers.
JSON_VALUES = 50

# How many characters of a reply are looked at: many times what a model may write.
JSON_CHARS = limits.REPLY_TEXT_CHARS

# How many objects and lists a reply may hold, in its text as well.
JSON_BRACKETS = 10_000

# How many characters may be read at places that begin like JSON and are none: what is quoted in
# part is read once for each of its levels. A reply with more of them is not read, for the same
# reason. The second figure is for the replies of a model that has no time left for them.
JSON_CHARS_WASTED, JSON_CHARS_WASTED_AFTER = JSON_CHARS // 2, JSON_CHARS // 8

# The names of an object's members are taken as they are where it has more of them than so many for
# each question, and so many more; else case and blanks around them do not matter.
MEMBERS_EACH, MEMBERS_MORE = 4, 80

# Names of more characters are no numbers of questions, whatever blanks are around them.
NAME_CHARS = 40

# An object or list is no longer tried as the whole answer to a question once those behind it, which
# are none, hold more members and elements than this: many times as many as there are options.
JSON_PARTS_TRIED = 2_000

# A name of so many characters takes as long to look at as another that has few.
NAME_CHARS_A_PART = 64

_DECODER = json.JSONDecoder(parse_float=near_float)

# Other brackets, as of `[x]` or `{id=1}`, begin no JSON.
_BEGINNING = re.compile(r'\{\s*["}]|\[\s*[\[{"\]\-0-9tfnNI]')

Look: TypeAlias = Callable[[int], None]


def wanted_labels(questions: Sequence[Question], backwards: bool) -> list[tuple[str, ...]]:
    """The labels of each line of a reply to all questions."""
    return [labels for question in questions for _, labels in question.reply_lines(backwards)]


def assembled(
    lines: Sequence[LabelLine], questions: Sequence[LabelQuestion], backwards: bool
) -> list[Reading]:
    """The readings of all questions, from the lines of all their labels. Raises `Unreadable`."""
    remaining = iter(lines)
    return [
        question.read_lines([next(remaining) for _ in question.reply_lines(backwards)], backwards)
        for question in questions
    ]


def decided(lines: Sequence[LabelLine], questions: Sequence[LabelQuestion]) -> list[Reading]:
    """The readings of a decision server's answer, whose labels are in the original order."""
    return assembled(lines, questions, backwards=False)


def read_json(
    text: str,
    questions: Sequence[Question],
    backwards: bool,
    look: Look = lambda _entries: None,
    has_time: bool = True,
) -> list[Reading]:
    """Read a verbal reply, also from a code fence, among other words, or after thought.

    All probabilities of a reply are on one scale, parts of 1 or percentages. `look` is told how
    many entries of its members are about to be looked at, and may raise. Where the reply's model
    has no time left, less is tried of what begins like JSON. Raises `Unreadable`.
    """
    written = without_thought(text[:JSON_CHARS])
    if written.count("{") + written.count("[") > JSON_BRACKETS:
        raise Unreadable("the reply holds more objects and lists than any answer has")
    most_wasted = JSON_CHARS_WASTED if has_time else JSON_CHARS_WASTED_AFTER
    values = list(filter(_may_answer, _json_values(written, most_wasted)))
    answers = _members(values, questions, backwards)
    look(sum(map(count_entries, answers)))
    rows = [
        (question, question.stated(answer, backwards), answer)
        for question, answer in zip(questions, answers, strict=True)
    ]
    scales = BOTH
    for _, stated, _ in rows:
        scales &= stated.scales
    if not scales:
        raise Unreadable("the reply's probabilities are on no known scale")
    return [
        question.read_stated(stated, answer, backwards, min(scales))
        for question, stated, answer in rows
    ]


def _members(values: Sequence[Any], questions: Sequence[Question], backwards: bool) -> list[Any]:
    """The member of each question, None where the reply has none.

    The last of several objects counts, as an earlier one may be quoted from the input.
    """
    names = [member(index) for index in range(len(questions))]
    for value in reversed(values):
        for candidate in _candidates(value):
            named = candidate
            if len(candidate) <= MEMBERS_EACH * len(names) + MEMBERS_MORE:
                named = {
                    name.strip().casefold(): one
                    for name, one in candidate.items()
                    if len(name) <= NAME_CHARS
                }
            if not named.keys().isdisjoint(names):
                return [named.get(name) for name in names]
    if len(questions) == 1:
        for alone in _alone(values):
            if _answers(questions[0], alone, backwards):
                return [alone]
    raise Unreadable("the reply holds no JSON object with the answers")


def _alone(values: Sequence[Any]) -> Iterator[Any]:
    """What may be an answer itself, without the object around it, the last first, each once.

    To look at one takes long where there are many options, or where it holds many names.
    """
    every = (one for value in reversed(values) for one in (value, *_candidates(value)))
    tried: set[int] = set()
    parts = 0
    for one in islice(every, JSON_VALUES):
        if id(one) in tried:
            continue
        yield one
        tried.add(id(one))
        parts += _parts(one)
        if parts > JSON_PARTS_TRIED:
            return


def _may_answer(value: Any) -> bool:
    """Whether a value holds more than numbers, as many a reply quotes: `[1]` or `sshd[1001]`."""
    return isinstance(value, dict) or any(type(one) not in (int, float) for one in value)


def _parts(value: Any) -> int:
    """How many members and elements an object or a list has, with those of objects in a list.

    Long names count as several.
    """
    if isinstance(value, dict):
        return sum(map(_parts_of_name, value))
    return sum(_parts(one) if isinstance(one, dict) else _parts_of_name(one) for one in value)


def _parts_of_name(name: Any) -> int:
    return 1 + len(name) // NAME_CHARS_A_PART if isinstance(name, str) else 1


def _candidates(value: Any) -> list[JsonObject]:
    """The objects that may be the reply: the value, its entries, or the only one inside it."""
    entries = value if isinstance(value, list) else [value]
    objects = [entry for entry in entries[:JSON_VALUES] if isinstance(entry, dict)]
    inner = [next(iter(entry.values())) for entry in objects if len(entry) == 1]
    return [*objects, *(value for value in inner if isinstance(value, dict))]


def _answers(question: Question, value: Any, backwards: bool) -> bool:
    try:
        return question.read_member(value, backwards).answered
    except Unreadable:
        return False


def _json_values(text: str, most_wasted: int) -> Iterator[Any]:
    """The JSON objects and lists in the text, one after the other. Raises `Unreadable`."""
    start, wasted = _next_start(text, 0), 0
    for _ in range(JSON_STARTS):
        if start < 0:
            return
        if wasted > most_wasted:
            break
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # Of a text without an end it is told where that begins, but it was read to the last.
            is_endless = error.msg.startswith("Unterminated string")
            wasted += (len(text) if is_endless else error.pos) - start
            # The error has counted the lines up to there, which is quicker than to read them.
            wasted += error.pos // 64
            end = start + 1
        except (ValueError, RecursionError):
            # Where this stopped is not known, so it counts as the whole rest.
            wasted += len(text) - start
            end = start + 1
        else:
            yield value
        start = _next_start(text, end)
    if start >= 0:
        raise Unreadable("the reply holds too much that begins like JSON and is no answer")


def _next_start(text: str, at: int) -> int:
    """Where the next object or list may begin, -1 where none does."""
    found = _BEGINNING.search(text, at)
    return found.start() if found else -1
