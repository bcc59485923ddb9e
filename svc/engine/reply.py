"""From a model's reply to one reading per question; one that cannot be read is never guessed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from svc.engine.prompt import member
from svc.providers.replies import Token
from svc.questions import Question, Reading, Unreadable

MASS_SLACK = 0.01  # how far over 1 rounding may push the probabilities at one position
JSON_STARTS = 50  # opening braces tried before a reply counts as holding no JSON object
_SPECIAL = re.compile(r"<\|[^|<>]*\|>|</?s>|<(?:eos|end_of_turn)>")
_EDGES = " \t\r\n\u2581\u0120"  # white space, and the marks that tokenizers write for a space


class NoLabelProbabilities(Unreadable):
    """The model gives no probabilities that labels could be read from."""


def read_lines(
    tokens: Sequence[Token], questions: Sequence[Question], backwards: bool, asked: int
) -> list[Reading]:
    """Read a logprobs reply: one label a line, with the alternatives at its position.

    `asked` is how many alternatives were asked for. Raises `Unreadable` when the reply does not
    keep the format, `NoLabelProbabilities` when its probabilities cannot be used.
    """
    wanted = [labels for question in questions for _, labels in question.reply_lines(backwards)]
    positions = _label_positions(tokens)
    if len(positions) != len(wanted):
        raise Unreadable(f"the reply has {len(positions)} label lines instead of {len(wanted)}")
    lines = iter(
        [_read_label(token, labels, asked) for token, labels in zip(positions, wanted, strict=True)]
    )
    return [
        question.read_lines([next(lines) for _ in question.reply_lines(backwards)], backwards)
        for question in questions
    ]


def read_json(text: str, questions: Sequence[Question], backwards: bool) -> list[Reading]:
    """Read a verbal reply, also out of a code fence or talk. Raises `Unreadable`."""
    reply = _find_object(text, {member(index) for index in range(len(questions))})
    return [
        question.read_member(reply.get(member(index)), backwards)
        for index, question in enumerate(questions)
    ]


def _label_positions(tokens: Sequence[Token]) -> list[Token]:
    """The one token with text of each line that is not blank."""
    lines: list[list[Token]] = [[]]
    for token in tokens:
        first, *further = _SPECIAL.sub("", token.text).split("\n")
        if first.strip(_EDGES):
            lines[-1].append(token)
        for part in further:
            lines.append([token] if part.strip(_EDGES) else [])
    if any(len(line) > 1 for line in lines):
        raise Unreadable("a line of the reply holds more than a label")
    return [token for line in lines for token in line]


def _read_label(token: Token, labels: Sequence[str], asked: int) -> dict[int, float]:
    """Sum the probabilities at one position over the tokens that read as the same label."""
    position = {label.casefold(): index for index, label in enumerate(labels)}
    if _label_of(token.text) not in position:
        raise Unreadable("a line of the reply is none of its labels")
    alternatives = dict(token.alternatives)
    alternatives.setdefault(token.text, token.logprob)
    seen: dict[int, float] = {}
    total = 0.0
    for text, logprob in alternatives.items():
        probability = math.exp(min(logprob, 0.0))
        total += probability
        index = position.get(_label_of(text))
        if index is not None:
            seen[index] = seen.get(index, 0.0) + probability
    if total > 1 + MASS_SLACK:
        raise NoLabelProbabilities("the alternatives' probabilities sum to more than 1")
    if len(seen) < len(labels) and len(token.alternatives) < asked:
        # With all that was asked for, a missing label is rarer than those given; with fewer,
        # nothing is known about it.
        raise NoLabelProbabilities("fewer alternatives than asked for, and a label is missing")
    return seen


def _label_of(text: str) -> str:
    if "<" in text:
        text = _SPECIAL.sub("", text)
    return text.strip(_EDGES).casefold()


def _find_object(text: str, members: set[str]) -> Mapping[str, Any]:
    """The first JSON object in `text` that has one of `members`."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(JSON_STARTS):
        if start < 0:
            break
        try:
            value, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and not members.isdisjoint(value):
            return value
        start = text.find("{", start + 1)
    raise Unreadable("the reply holds no JSON object with the answers")
