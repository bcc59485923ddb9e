"""How an input is written, and what of each of its records is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc import limits
from svc.errors import InvalidRequest
from svc.jsontext import JsonObject
from svc.names import UnsoundName, visible_text
from svc.phrases import quoted

JSONL, CSV, TSV, TEXT = FORMATS = ("jsonl", "csv", "tsv", "text")
_BY_SUFFIX = {".csv": CSV, ".tsv": TSV, ".txt": TEXT}
# The characters between the cells of a table, of which its first line uses one.
DELIMITERS = {CSV: (",", ";", "\t"), TSV: ("\t",)}
UTF_8 = "utf-8"


@dataclass(frozen=True, slots=True)
class Record:
    """What is asked about, and the caller's own id of it.

    `fields` are all fields of a record whose columns were told apart, None of any other.
    """

    value: Any
    ref: str | None = None
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The format of an input, and which of its columns or fields are asked about.

    Without `columns` these are all but that of the caller's id, `ref`, and those that hold
    `labels`; a table with one such column is asked about as texts.
    """

    format: str = JSONL
    encoding: str = UTF_8
    columns: tuple[str, ...] = ()
    ref: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def tabular(self) -> bool:
        """Whether the first line names columns."""
        return self.format in DELIMITERS

    @property
    def identity(self) -> JsonObject:
        """What a run must have in common with the one that it continues; nothing for JSON lines."""
        told = {
            "format": (self.format, JSONL),
            "encoding": (self.encoding, UTF_8),
            "columns": (list(self.columns), []),
            "ref_column": (self.ref, None),
        }
        return {name: value for name, (value, usual) in told.items() if value != usual}

    def record(self, value: Any) -> Record:
        """The record that a line with this JSON value holds. Raises `InvalidRequest`."""
        if not (self.tabular or self.columns or self.ref):
            return Record(value)
        if not isinstance(value, dict):
            raise InvalidRequest("the line must be an object, of which columns are chosen")
        fields = value if self.tabular or self.columns else None
        return Record(self._state(value), self._named(value), fields)

    def _state(self, fields: JsonObject) -> Any:
        apart = () if self.columns else (self.ref, *self.labels)
        chosen = self.columns or [name for name in fields if name not in apart]
        if missing := [name for name in chosen if name not in fields]:
            raise InvalidRequest(f"the line has no {quoted(missing[0])}")
        if self.tabular and not any(fields[name].strip() for name in chosen):
            raise InvalidRequest("there is no text in the row")
        if len(chosen) == 1 and (self.columns or self.tabular):
            return fields[chosen[0]]
        return {name: fields[name] for name in chosen}

    def _named(self, fields: JsonObject) -> str | None:
        given = fields.get(self.ref) if self.ref else None
        if given in (None, ""):
            return None
        try:
            return visible_text(str(given).strip(), limits.REF_CHARS)
        except UnsoundName as error:
            raise InvalidRequest(f"{quoted(self.ref or '')}: {error}") from None


def format_of(path: str) -> str:
    """The format that the end of a file's name says; JSON lines where it says none."""
    return _BY_SUFFIX.get(Path(path).suffix.lower(), JSONL)
