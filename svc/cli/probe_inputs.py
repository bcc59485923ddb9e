"""What `svc probe` is to ask, and about what."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from svc.batch import open_input
from svc.cli.question_files import read_named
from svc.cli.wording_files import read_words
from svc.errors import ApiError, SettingsError
from svc.evals import Words
from svc.jsontext import JsonObject
from svc.phrases import listed
from svc.questions import Question


@dataclass(frozen=True, slots=True)
class Questioned:
    """Questions as they are written and as they were checked, other words for them, and states."""

    name: str
    fields: JsonObject
    questions: Mapping[str, Question]
    words: Mapping[str, Words]
    states: Sequence[Any]


def read_questioned(name: str, source: str | None, rows: int, wordings: str | None) -> Questioned:
    """Everything that the command line names. Raises `SettingsError`."""
    named = read_named(name)
    words = read_words(wordings) if wordings else {}
    if unknown := [key for key in words if key not in named.questions]:
        raise SettingsError(f"wordings {wordings!r}: there is no question {listed(unknown)}")
    states = _states(source, rows) if source else list(named.states[:rows])
    if not states:
        raise SettingsError("there is no state to ask about; --input names a file of them")
    return Questioned(name, named.fields, named.questions, words, states)


def _states(source: str, rows: int) -> list[Any]:
    with closing(open_input(source)) as opened:
        lines = list(itertools.islice(opened.lines, rows))
    states = []
    for line in lines:
        try:
            states.append(line.parse())
        except ApiError as error:
            raise SettingsError(f"input {source!r}: line {line.number}: {error.message}") from None
    return states
