"""Decisions as CSV (RFC 4180), of which no cell is run by a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from svc.cells import guarded
from svc.learning import Answers, spoken
from svc.store import GivenLabel
from svc.store.decisions import AuditEntry


def rows(
    entry: AuditEntry, labels: Sequence[GivenLabel], answers: Answers, question: str | None
) -> Iterator[Sequence[object]]:
    """A row for each answer of a decision, or for the one to `question`."""
    facts, by_key = entry.facts, {label.key: label for label in labels}
    tags = "" if entry.tags == "{}" else entry.tags
    told = cells(entry.id, facts.ref, facts.project, _moment(entry.created_at), facts.model, tags)
    for one in answers.of(entry, question):
        label = by_key.get(one.key)
        yield told + cells(one.key, one.text, one.confidence, *_label(label))


def _label(label: GivenLabel | None) -> tuple[object, ...]:
    if label is None:
        return (None, None, None, None)
    given_at = None if label.created_at is None else _moment(label.created_at)
    return (spoken(label.label), given_at, label.sampled, label.chance)


def _moment(milliseconds: int) -> str:
    """As ISO 8601 has it, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def text_of(rows: Iterable[Sequence[object]]) -> str:
    """The rows as RFC 4180 has them."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def cells(*values: object) -> tuple[object, ...]:
    """Cells that no spreadsheet runs."""
    return tuple(map(_cell, values))


def _cell(value: object) -> object:
    """A cell that no spreadsheet runs."""
    return guarded(value) if isinstance(value, str) else value


# The names of the columns.
HEAD = text_of(
    [
        (
            *("id", "ref", "project", "created_at", "model", "tags"),
            *("question", "answer", "confidence", "label", "labelled_at", "sampled", "chance"),
        )
    ]
)
