"""The texts of a reviewer's file, by what decisions are called: they stay on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from svc.batch import (
    CSV,
    DELIMITERS,
    JSONL,
    TEXT,
    Form,
    Rows,
    format_of,
    lines_of,
    open_input,
    run_of,
)
from svc.errors import ApiError, SettingsError
from svc.jsontext import JsonObject
from svc.phrases import listed, reason

# Columns that are taken where none is named, the likeliest first.
NAME_COLUMNS = ("ref", "id", "reference", "decision_id", "ticket_id", "key")
TEXT_COLUMNS = ("text", "state", "message", "body", "content", "description", "input")
# Ends of names that say JSON lines; those of other formats are known to `svc map`, too.
_JSON_LINES = (".jsonl", ".ndjson", ".json")
# The records in which the columns of JSON lines are looked for.
_COLUMNS_FROM = 100


@dataclass(frozen=True, slots=True)
class Table:
    """A file: the names of its columns, and its records, None where a line is empty."""

    path: str
    columns: list[str]
    records: list[Any]

    @property
    def mapped(self) -> bool:
        """Whether it is what `svc map` wrote: line numbers with decisions or errors."""
        first = next((one for one in self.records if one is not None), None)
        return isinstance(first, dict) and "line" in first and ("id" in first or "error" in first)


class Texts:
    """What a reviewer reads of each decision; a name with several texts has none."""

    def __init__(self, named: Iterable[tuple[str, str]]) -> None:
        self._texts: dict[str, str] = {}
        unsure = set()
        for name, text in named:
            if self._texts.setdefault(name, text) != text:
                unsure.add(name)
        for name in unsure:
            del self._texts[name]
        self.unsure = len(unsure)

    def of(self, item: Mapping[str, Any]) -> str | None:
        """The text of an item of the review queue, by its id or its ref."""
        found = self._texts.get(item["id"])
        return self._texts.get(item["ref"]) if found is None and item["ref"] else found


def read_texts(paths: Sequence[str], naming: str | None, reading: str | None) -> Texts:
    """The texts of a file, whose input line numbers a file that `svc map` wrote may name.

    `naming` and `reading` are the columns of refs and of texts, None for what is obvious. Raises
    `SettingsError`.
    """
    tables = [_table(path) for path in paths]
    mapped = [one for one in tables if one.mapped]
    others = [one for one in tables if not one.mapped]
    if len(others) != 1 or len(mapped) > 1:
        raise SettingsError("name one file with texts, and at most one that svc map wrote")
    (table,) = others
    for answers in mapped:
        _check_fits(answers, table)
    if not (mapped or table.columns):
        raise SettingsError(
            f"{table.path!r} has no columns, and so no refs; name what svc map wrote of it, too"
        )
    naming = _column(table, "--ref-column", naming, NAME_COLUMNS, needed=not mapped)
    reading = _column(table, "--text-column", reading, TEXT_COLUMNS, needed=False)
    return Texts((*_by_line(table, mapped, reading), *_by_name(table, naming, reading)))


def _check_fits(answers: Table, table: Table) -> None:
    """Raise `SettingsError` where `answers` were made from other records than `table` has."""
    run = run_of(answers.path)
    # Of another encoding than UTF-8 the texts had to be written anew.
    checked = "input" in run and "encoding" not in run
    if checked and run["input"] not in _digests(table.path, run):
        raise SettingsError(
            f"{answers.path!r} was made from another file than {table.path!r}, or from this one "
            "before it was changed: its lines may not be those that were answered"
        )
    last = max((at for at, _ in _numbered(answers)), default=0)
    if last > len(table.records):
        raise SettingsError(
            f"{answers.path!r} has an answer for record {last:,}, and {table.path!r} has "
            f"{len(table.records):,}: it was made from another file"
        )


def _digests(path: str, run: Mapping[str, Any]) -> Iterator[str]:
    """What a run may have noted of a file: of all of it, or of its first line from a pipe."""
    with closing(open_input(path, Form(str(run.get("format", JSONL))))) as source:
        yield source.sha256
        for first in islice(source.lines, 1):
            yield hashlib.sha256(first.data or b"").hexdigest()


def _numbered(answers: Table) -> Iterator[tuple[int, JsonObject]]:
    """What `svc map` wrote of each record, with the record's number."""
    for answer in answers.records:
        at = answer.get("line") if isinstance(answer, dict) else None
        if isinstance(at, int):
            yield at, answer


def _by_line(table: Table, mapped: list[Table], reading: str | None) -> Iterator[tuple[str, str]]:
    for at, answer in (one for answers in mapped for one in _numbered(answers)):
        name, record = answer.get("id"), table.records[at - 1] if at >= 1 else None
        if isinstance(name, str) and record is not None:
            yield name, _text(record, reading)


def _by_name(table: Table, naming: str | None, reading: str | None) -> Iterator[tuple[str, str]]:
    for record in table.records if naming is not None else ():
        name = record.get(naming) if isinstance(record, dict) else None
        if name is not None and str(name).strip():
            yield str(name).strip(), _text(record, reading)


def _text(record: Any, reading: str | None) -> str:
    if reading is not None and isinstance(record, dict):
        record = record.get(reading, "")
    if isinstance(record, str):
        return record
    # What is no value of JSON is a number that no float holds.
    return json.dumps(record, indent=2, ensure_ascii=False, default=str)


def _column(
    table: Table, option: str, given: str | None, likely: Sequence[str], needed: bool
) -> str | None:
    if given is not None and given not in table.columns:
        raise SettingsError(f"{option} {given!r}: {table.path!r} has {listed(table.columns)}")
    lower = {column.strip().lower(): column for column in reversed(table.columns)}
    found = given or next((lower[name] for name in likely if name in lower), None)
    if found is None and needed:
        raise SettingsError(
            f"{table.path!r}: which column has the refs of the decisions? Name it with {option}; "
            f"there are {listed(table.columns)}"
        )
    return found


def _table(path: str) -> Table:
    """A file as a table. Raises `SettingsError`."""
    try:
        form = _format(path)
        if form == JSONL:
            found = _json_lines(path)
        else:
            found = _lines_of_text(path) if form == TEXT else _comma_separated(path, form)
    except UnicodeDecodeError:
        raise SettingsError(f"{path!r} is not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{path!r}: {reason(error)}") from None
    if all(record is None for record in found.records):
        raise SettingsError(f"{path!r} holds no records")
    return found


def _format(path: str) -> str:
    """The format that a file's name says as it does to `svc map`, or else its first line."""
    named = format_of(path)
    if named != JSONL or path.lower().endswith(_JSON_LINES):
        return named
    with open(path, encoding="utf-8-sig") as file:
        first = next((line for line in file if line.strip()), "")
    return JSONL if first.lstrip().startswith("{") or _is_json(first) else CSV


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _comma_separated(path: str, form: str) -> Table:
    """CSV after RFC 4180; the first record names the columns."""
    with open(path, "rb") as file:
        rows = Rows(lines_of(file, "utf-8", repr(path)), DELIMITERS[form], repr(path))
        records = [dict(zip(rows.columns, row, strict=False)) for _, row in rows]
    return Table(path, rows.columns, records)


def _lines_of_text(path: str) -> Table:
    with open(path, "rb") as file:
        lines = [line.rstrip("\r\n") for line in lines_of(file, "utf-8", repr(path))]
    return Table(path, [], [line if line.strip() else None for line in lines])


def _json_lines(path: str) -> Table:
    records = []
    with closing(open_input(path)) as source:
        for line in source.lines:
            try:
                records.append(line.parse() if line.data is None or line.data.strip() else None)
            except ApiError as error:
                raise SettingsError(f"{path!r}, line {line.number}: {error.message}") from None
    objects = [one for one in records[:_COLUMNS_FROM] if isinstance(one, dict)]
    return Table(path, list(dict.fromkeys(key for one in objects for key in one)), records)
