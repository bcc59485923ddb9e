"""Files of labels, as lines of `POST /v1/feedback/bulk`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc import jsontext
from svc.cells import unguarded
from svc.errors import InvalidJson, SettingsError
from svc.jsontext import JsonObject
from svc.questions import Question

# What a line has besides labels; every other column or member is a question's key.
NAMED = ("id", "ref", "sampled", "chance", "reviewer")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file by its number there; `value` is None where `error` says why."""

    number: int
    value: JsonObject | None = None
    error: str = ""


def read(path: Path, questions: Mapping[str, Question]) -> Iterator[Line]:
    """The lines of a file, CSV by its name or else JSON lines, without empty ones.

    `questions` say which labels texts stand for. Raises `OSError` and `SettingsError`.
    """
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{str(path)!r} is not UTF-8 (byte {error.start})") from None
    if path.suffix.lower() == ".csv":
        return _of_csv(text, questions)
    return _of_json(text)


def _of_json(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _checked(number, lambda line=line: _nested(line))  # type: ignore[misc]


def _nested(line: str) -> JsonObject:
    """The line with its labels in an object of their own."""
    value = jsontext.loads(line.encode(), "the line", one_line=True)
    if not isinstance(value, dict) or isinstance(value.get("labels"), dict):
        return value  # type: ignore[no-any-return]
    return _line(value, value)


def _of_csv(text: str, questions: Mapping[str, Question]) -> Iterator[Line]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(rows, [])]
        if not {"id", "ref"} & set(head) or len(set(head)) < len(head):
            raise SettingsError(
                "the first line must name the columns, each once: id or ref, and question keys"
            )
        for row in rows:
            if any(row):
                yield _checked(rows.line_num, lambda row=row: _row(head, row, questions))  # type: ignore[misc]
    except csv.Error as error:
        raise SettingsError(f"line {rows.line_num}: the file is not CSV: {error}") from None


def _row(head: list[str], row: list[str], questions: Mapping[str, Question]) -> JsonObject:
    if len(row) != len(head):
        raise InvalidJson(f"has {len(row)} cells, the first line has {len(head)}")
    cells = {name: unguarded(cell) for name, cell in zip(head, row, strict=True) if cell}
    labels = {name: label_of(cell, questions.get(name)) for name, cell in cells.items()}
    named: JsonObject = {**cells}
    if "chance" in cells:
        named["chance"] = _json(cells["chance"])
    return _line(named, labels)


def _line(named: JsonObject, labels: Mapping[str, Any]) -> JsonObject:
    kept = {name: named[name] for name in NAMED if name in named}
    return {**kept, "labels": {key: one for key, one in labels.items() if key not in NAMED}}


def label_of(cell: str, question: Question | None) -> Any:
    """What a cell stands for: the text, if the question takes it as it is, or a JSON value."""
    value = _json(cell)
    for candidate in (cell, value):
        try:
            if question is not None:
                question.check_label(candidate)
                return candidate
        except ValueError:
            continue
    return value


def _json(cell: str) -> Any:
    """The JSON value of a cell, which a spreadsheet may write as TRUE; other text is text."""
    text = cell.lower() if cell in ("TRUE", "FALSE", "True", "False") else cell
    try:
        return jsontext.loads(text.encode("utf-8", "replace"), "the cell")
    except InvalidJson:
        return cell


def _checked(number: int, load: Callable[[], JsonObject]) -> Line:
    try:
        return Line(number, load())
    except InvalidJson as error:
        return Line(number, error=error.message)
