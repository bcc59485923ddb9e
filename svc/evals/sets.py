"""Eval sets: a question with states whose true answers are known, one JSON file each.

{"question": {...as POST /v1/decide takes it...}, "rows": [{"state": ..., "label": ...}, ...]}

Other fields, of a file or of a row, are for people.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from svc import files, jsontext
from svc.errors import ApiError, SettingsError
from svc.phrases import reason
from svc.questions import Question
from svc.schemas import DecisionRequest, load_decision, with_state

SUFFIX = ".json"
# The seed of every sample and split, so that runs can be compared.
SEED = 1
# Characters of a digest: enough to tell the rows of any set apart.
_DIGEST = 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvalRow:
    """A state and its true answer: `label` as in the file, `truth` as it was checked.

    Rows are numbered from 1 in the file; `digest` identifies state and label.
    """

    number: int
    state: Any
    label: Any
    truth: Any
    digest: str


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A question as `POST /v1/decide` takes it, which goes by the set's name, and its rows."""

    name: str
    question: Mapping[str, Any]
    rows: tuple[EvalRow, ...]

    @property
    def digest(self) -> str:
        """Identifies the question's wording."""
        return digest(self.question)

    def request(self, fields: Mapping[str, Any], **other: Any) -> DecisionRequest:
        """A request for this question with further `fields`, about no state of the set yet.

        `other` replaces fields of the question. Raises `ApiError`.
        """
        questions = {self.name: {**self.question, **other}}
        return load_decision({**fields, "questions": questions, "state": {}})

    def sampled(self, count: int | None) -> EvalSet:
        """With `count` of its rows, the same ones each time and those of any smaller count."""
        chosen = shuffled(self.rows)[:count]
        return replace(self, rows=tuple(sorted(chosen, key=lambda row: row.number)))


def shuffled(rows: Sequence[T]) -> list[T]:
    """The rows in a random order that is always the same."""
    return random.Random(SEED).sample(list(rows), len(rows))


def by_state(rows: Sequence[EvalRow]) -> list[list[EvalRow]]:
    """The rows of each state together, in the order in which the states come first."""
    found: dict[str, list[EvalRow]] = {}
    for row in rows:
        found.setdefault(digest(row.state), []).append(row)
    return list(found.values())


def digest(value: Any) -> str:
    """A short SHA-256 of a JSON value."""
    return hashlib.sha256(jsontext.dumps(value).encode("utf-8", "replace")).hexdigest()[:_DIGEST]


def load_sets(folder: str, names: Sequence[str]) -> list[EvalSet]:
    """The named sets of a folder, or all of them in order of name. Raises `SettingsError`."""
    try:
        existing = sorted(path.stem for path in Path(folder).iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise SettingsError(f"eval sets {folder!r}: {reason(error)}") from None
    for name in names:
        if name not in existing:
            listed = ", ".join(existing) or "none"
            raise SettingsError(f"there is no eval set {name!r} in {folder!r}; there are: {listed}")
    if not existing:
        raise SettingsError(f"there is no eval set in {folder!r}; each is a file <set>{SUFFIX}")
    return [load_set(folder, name) for name in dict.fromkeys(names or existing)]


def load_set(folder: str, name: str) -> EvalSet:
    """One set, every row of it checked. Raises `SettingsError` naming the file and the row."""
    path = Path(folder, f"{name}{SUFFIX}")
    try:
        return _read(name, files.read_json(path))
    except OSError as error:
        problem = reason(error)
    except ApiError as error:
        problem = error.message
    except ValueError as error:
        problem = str(error)
    raise SettingsError(f"eval set {str(path)!r}: {problem}")


def _read(name: str, value: Any) -> EvalSet:
    """The set that a file holds. Raises `ValueError` or `ApiError`."""
    if not isinstance(value, dict) or not isinstance(value.get("question"), dict):
        raise ValueError("must be an object with question and rows, question an object")
    rows = value.get("rows")
    if not isinstance(rows, list) or not rows:
        raise ValueError("rows must be a list of at least one row")
    empty = EvalSet(name, value["question"], ())
    return replace(empty, rows=tuple(_rows(empty.request({}), rows)))


def _rows(request: DecisionRequest, rows: Sequence[Any]) -> Iterator[EvalRow]:
    (question,) = request.questions.values()
    for number, row in enumerate(rows, 1):
        try:
            yield _row(request, question, number, row)
        except (ApiError, ValueError) as error:
            raise ValueError(f"row {number}: {error}") from None


def _row(request: DecisionRequest, question: Question, number: int, row: Any) -> EvalRow:
    if not isinstance(row, dict) or not {"state", "label"} <= row.keys():
        raise ValueError("must be an object with state and label")
    with_state(request, row["state"])
    try:
        truth = question.check_label(row["label"])
    except ValueError as error:
        raise ValueError(f"label {error}") from None
    content = digest([row["state"], row["label"]])
    return EvalRow(number, row["state"], row["label"], truth, content)
