"""Sums of decisions over time, by project and by model or question, kept with every decision.

There are three spans, so that an hour is seen in steps of five minutes and a year in days, each at
the price of a few hundred rows. Sums over short spans are deleted when nobody asks for them any
more. Callers choose the names, so that of each project a day has only so many, and one more that
counts all others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from svc import limits
from svc.records import Decision, Source
from svc.store.database import Database
from svc.store.errors import TooManySums
from svc.store.kept_names import NAME_CHARS, OTHERS, Names
from svc.store.rows import execute


class Spans(IntEnum):
    """The spans, in seconds."""

    FIVE_MINUTES = 300
    HOUR = 3_600
    DAY = 86_400


# How long, in seconds, sums are kept; those of days stay.
_KEPT_S = {Spans.FIVE_MINUTES: 2 * Spans.HOUR, Spans.HOUR: 9 * Spans.DAY}

# Models in failures that answered nothing of the project in so many days count as one of the
# others: they may not exist.
ANSWERED_DAYS = 30

# How many names a report tells apart, those with the most decisions.
NAMES = 100


class By(StrEnum):
    """What decisions are told apart by."""

    PROJECT = "project"
    MODEL = "model"
    QUESTION = "question"


@dataclass(slots=True)
class Sums:
    """The sums of some decisions.

    `failed` counts those that no model answered, which are in no other sum. `answers` leaves out
    skipped questions, `abstained` are those of them below the question's `min_confidence`.
    """

    decisions: int = 0
    failed: int = 0
    cached: int = 0
    answers: int = 0
    abstained: int = 0
    cost_usd: float = 0.0
    latency_ms: float = 0.0


class Failure(NamedTuple):
    """A decision that no model answered; `model` has the ids of those that were to."""

    project: str
    model: str


@dataclass(frozen=True, slots=True)
class Report:
    """Sums by the start of each span, in unix seconds, and by name; both without empty ones."""

    by_start: Mapping[int, Sums]
    by_name: Mapping[str, Sums]


# The project, what decisions are told apart by, and the sums of each name.
_Sums = dict[tuple[str, By], dict[str, Sums]]

_SUMS = tuple(field.name for field in fields(Sums))
_values = attrgetter(*_SUMS)
_ADD = (
    f"INSERT INTO activity (span, start, by, project, name, {', '.join(_SUMS)}) "
    "VALUES {} ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)
)
_IN_SPAN = "span = ? AND by = ? AND start = ? AND project = ?"
_KNOWN = (
    "WITH given (number, span, by, start, project, name) AS (VALUES {}) "
    "SELECT json_group_array(json_array(number)) "
    "FROM given CROSS JOIN activity USING (span, by, start, project, name)"
)
_ANSWERED = (
    f"SELECT 1 FROM activity WHERE {_IN_SPAN.replace('start = ?', 'start IN ({})')} AND name = ? "
    "AND decisions LIMIT 1"
)
_HOW_MANY = (
    "WITH given (number, span, by, start, project) AS (VALUES {}) "
    "SELECT json_group_array(json_array(number, (SELECT count(*) FROM activity AS kept "
    "WHERE kept.span = given.span AND kept.by = given.by AND kept.start = given.start "
    "AND kept.project = given.project))) FROM given"
)
_FORGET = "DELETE FROM activity WHERE span = ? AND by = ? AND start < ?"
_LAST = (
    "SELECT start, project, name FROM activity WHERE span = ? AND by = ? AND start < ? "
    "ORDER BY start, project, name LIMIT 1 OFFSET ?"
)
_FORGET_UP_TO = (
    "DELETE FROM activity WHERE span = ? AND by = ? AND (start, project, name) <= (?, ?, ?)"
)
_FOUND = "FROM activity WHERE span = ? AND by = ? AND start IN (SELECT value FROM json_each(?)) {}"
_BEYOND = f"SELECT 1 {_FOUND.format('')} LIMIT 1 OFFSET ?"
_READ = (
    f"SELECT {{0}}, {', '.join(f'sum({name})' for name in _SUMS)} {_FOUND.format('{2}')} "
    "GROUP BY {0} ORDER BY {1} LIMIT ?"
)


def names() -> Names:
    """Those of a day, of which a shorter span has no more."""
    return Names(_KNOWN, _HOW_MANY)


class Activity:
    """Adds to the sums and reads them."""

    def __init__(self, database: Database, most: int = limits.ACTIVITY_SUMS) -> None:
        """A report on all projects reads at most `most` sums."""
        self._database, self._most = database, most

    def read(self, by: By, starts: range, project: str | None) -> Report:
        """The sums of the spans that begin at `starts`, in unix seconds, and last a step of these.

        Of one project, or of all where it is None; at most `NAMES` names.
        Raises `TooManySums` and `StorageError`.
        """
        # The sums by model are those of whole decisions.
        column = "project" if by is By.PROJECT else "name"
        place = [starts.step, By.MODEL if by is By.PROJECT else by, json.dumps([*starts])]
        # With each start given, the rows of a project are found among those of all others.
        only = "" if project is None else "AND project = ?"
        place += [] if project is None else [project]
        with self._database.read() as connection:
            # One project hardly has as many, see `limits.ACTIVITY_SUMS`.
            if project is None and connection.execute(_BEYOND, (*place, self._most)).fetchone():
                raise TooManySums(f"there are over {self._most:,} sums")
            by_start = connection.execute(_READ.format("start", "1", only), (*place, -1)).fetchall()
            by_name = connection.execute(
                _READ.format(column, "sum(decisions) DESC, 1", only), (*place, NAMES)
            ).fetchall()
        return Report(_sums(by_start), _sums(by_name))


def add(
    connection: sqlite3.Connection, now_ms: int, names: Names, decisions: Iterable[Decision]
) -> None:
    """Count decisions that were stored now."""
    sums: _Sums = {}
    for decision in decisions:
        whole = _of(sums, decision.project, By.MODEL, decision.model)
        whole.decisions += 1
        whole.cached += decision.cached
        whole.cost_usd += decision.cost_usd
        whole.latency_ms += decision.latency_ms
        for key, answer in decision.answers.items():
            if answer.source is not Source.SKIPPED:
                one = _of(sums, decision.project, By.QUESTION, key)
                one.decisions += 1
                for part in (whole, one):
                    part.answers += 1
                    part.abstained += answer.abstains
    _write(connection, now_ms, names, sums)


def add_failures(
    connection: sqlite3.Connection, now_ms: int, names: Names, failures: Iterable[Failure]
) -> None:
    """Count decisions that no model answered."""
    sums: _Sums = {}
    for failure in failures:
        known = _answered(connection, now_ms, failure)
        _of(sums, failure.project, By.MODEL, failure.model if known else OTHERS).failed += 1
    _write(connection, now_ms, names, sums)


def _answered(connection: sqlite3.Connection, now_ms: int, failure: Failure) -> bool:
    """Whether these models gave the project an answer in the last days."""
    today = now_ms // 1_000 // Spans.DAY * Spans.DAY
    days = range(today - ANSWERED_DAYS * Spans.DAY, today + 1, Spans.DAY)
    place = (Spans.DAY, By.MODEL, *days, failure.project, failure.model)
    query = _ANSWERED.format(",".join("?" * len(days)))
    return connection.execute(query, place).fetchone() is not None


def _of(sums: _Sums, project: str, by: By, name: str) -> Sums:
    named = sums.setdefault((project, by), {})
    name = name if len(name) <= NAME_CHARS else OTHERS
    if name not in named:
        named[name] = Sums()
    return named[name]


def _write(connection: sqlite3.Connection, now_ms: int, names: Names, sums: _Sums) -> None:
    now = now_ms // 1_000
    rows = []
    for (project, by), named in sums.items():
        day = (Spans.DAY, by, now // Spans.DAY * Spans.DAY, project)
        wanted = [(day, name) for name in named]
        kept = zip(names.of(connection, wanted), named.values(), strict=True)
        rows += [(by, project, name, *_values(one)) for name, one in kept]
    starts = [(int(span), now // span * span) for span in Spans]
    execute(connection, _ADD, [(*start, *row) for start in starts for row in rows])


def forget_old(connection: sqlite3.Connection, now_ms: int, most: int) -> bool:
    """Delete at most so many sums over short spans that are no longer kept.

    Returns whether there were fewer.
    """
    for span, kept_s in _KEPT_S.items():
        for by in (By.MODEL, By.QUESTION):
            old = (span, by, now_ms // 1_000 - kept_s)
            last = connection.execute(_LAST, (*old, most - 1)).fetchone()
            if last is not None:
                connection.execute(_FORGET_UP_TO, (span, by, *last))
                return False
            most -= connection.execute(_FORGET, old).rowcount
    return True


def _sums(rows: Sequence[Sequence[Any]]) -> dict[Any, Sums]:
    return {row[0]: Sums(*row[1:]) for row in rows}
