"""The answers of a decision as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from svc.cli.tables import echo_json, table
from svc.jsontext import JsonObject
from svc.phrases import shortened
from svc.questions import Question
from svc.records import Answer, Source

_HEAD = ("question", "answer", "probability", "others")
# The places of the columns that hold words.
_TEXT = {0, 1, 3}
# Of the options that were not chosen, the likeliest are shown, down to this probability.
_OTHERS, _LEAST = 3, 0.005
# The most characters of one of them.
_CELL = 24


def echo_answers(questions: Mapping[str, Question], decision: JsonObject, as_json: bool) -> None:
    """Print the answers of a decision, or all of it as JSON."""
    if as_json:
        echo_json(decision)
    else:
        click.echo("\n".join(answer_table(questions, decision["answers"])))


def answer_table(questions: Mapping[str, Question], answers: JsonObject) -> list[str]:
    """The lines of a table of answers as `POST /v1/decide` gives them, a row for each question."""
    return table(_HEAD, [_row(key, questions[key], one) for key, one in answers.items()], _TEXT)


def _row(key: str, question: Question, fields: JsonObject) -> tuple[str, ...]:
    source = Answer.kept(fields).source
    if source is Source.SKIPPED:
        return key, "(no model answered)" if fields.get("refused") else "(skipped)", "-", ""
    label, probability = question.shown(fields)
    answer = _words(question, label) + (" (unsure)" if fields.get("abstain") else "")
    if source is Source.RULE:
        return key, answer, "-", "by a rule"
    return key, answer, f"{probability:.2f}", ", ".join(_others(question, fields, label))


def _words(question: Question, label: Any) -> str:
    return label if isinstance(label, str) else question.spoken(label)


def _others(question: Question, fields: JsonObject, label: Any) -> Iterator[str]:
    """What was not chosen, the likeliest first."""
    given = fields.get("probabilities", {})
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    chosen = label if isinstance(label, tuple) else (label,)
    others = [pair for pair in pairs if pair[0] not in chosen and pair[1] >= _LEAST]
    for other, probability in sorted(others, key=lambda pair: -pair[1])[:_OTHERS]:
        yield f"{shortened(_words(question, other), _CELL)} {probability:.2f}"
