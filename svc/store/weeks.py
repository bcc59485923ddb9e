"""Weekly sums of the answers, updated with every decision, so that drift is cheap to read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from svc.store import ids
from svc.store.database import Database
from svc.store.kept_names import NAME_CHARS, OTHERS, Names
from svc.store.rows import execute

DAY_MS = 86_400_000

# Week 0 begins on this day, three days before the start of unix time.
_FIRST_MONDAY = date(1969, 12, 29)
_DAYS_BEFORE_UNIX_TIME = 3

_ADD = (
    "INSERT INTO weeks (project, question_id, week, top, decisions, confidence, squares) "
    "VALUES {} ON CONFLICT DO UPDATE SET "
    "decisions = decisions + 1, confidence = confidence + excluded.confidence, "
    "squares = squares + excluded.squares"
)
_KNOWN = (
    "WITH given (number, project, question_id, week, top) AS (VALUES {}) "
    "SELECT json_group_array(json_array(number)) "
    "FROM given CROSS JOIN weeks USING (project, question_id, week, top)"
)
_HOW_MANY = (
    "WITH given (number, project, question_id, week) AS (VALUES {}) "
    "SELECT json_group_array(json_array(number, (SELECT count(*) FROM weeks AS kept "
    "WHERE kept.project = given.project AND kept.question_id = given.question_id "
    "AND kept.week = given.week))) FROM given"
)
_FIRST = "SELECT seq FROM decisions WHERE id >= ? ORDER BY id LIMIT 1"
# How a set of options begins.
_SEVERAL = "["
# Sets that a week does not count by themselves are counted in so many groups, by a hash: it depends
# neither on the week nor on which sets came first, so that groups of several weeks can be compared.
_GROUPS = 1_024
# How the name of a group begins; a set, which is JSON, never does so.
_GROUP = f"[{OTHERS} "
# How an option with a long name is counted, and the digits of its SHA-256 there: each week would
# have the name anew. A set, which is JSON, never begins so either.
_LONG, _LONG_DIGITS = "[(long) ", 32
# A row after every other.
_END = 2**63 - 1
_SINCE = (
    "SELECT week, top, decisions, confidence, squares FROM weeks "
    "WHERE project = ? AND question_id = ? AND week > ? AND week <= ? ORDER BY week, top"
)
_DEFINITION = "SELECT definition FROM questions WHERE id = ?"


@dataclass(slots=True)
class Week:
    """The answers to one question in an ISO week.

    `tops` has the decisions by top answer, with all extracted values under "", and sets of options
    that are not counted by themselves under their groups. `confidence` is the sum of theirs,
    `squares` that of their squares, None where not all were counted.
    """

    number: int
    tops: dict[str, int]
    confidence: float
    squares: float | None = 0.0

    @property
    def unnamed(self) -> bool:
        """Whether sets of options are not counted by themselves."""
        return any(top.startswith(_GROUP) for top in self.tops)

    @property
    def counts(self) -> dict[str, int]:
        """The decisions by top answer, with all groups as one."""
        return _summed(
            (OTHERS if top.startswith(_GROUP) else top, n) for top, n in self.tops.items()
        )

    @property
    def grouped(self) -> dict[str, int]:
        """The same with all sets of options in their groups, which are alike in all weeks."""
        return _summed(
            (_group(top) if top.startswith(_SEVERAL) else top, n) for top, n in self.tops.items()
        )

    def is_within(self, weeks: int, now_ms: int) -> bool:
        """Whether it is one of the last `weeks` weeks, this one included."""
        return self.number > number(now_ms) - weeks

    @property
    def name(self) -> str:
        """The week as ISO 8601 writes it, `YYYY-Www`."""
        monday = _FIRST_MONDAY + timedelta(weeks=self.number)
        return "{}-W{:02}".format(*monday.isocalendar())


class Weeks:
    """Reads the sums."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, project: str, question_id: int, weeks: int, now_ms: int) -> list[Week]:
        """The last `weeks` weeks, this one included, oldest first, without empty ones.

        Raises `StorageError`.
        """
        this_week = number(now_ms)
        place = (project, question_id, this_week - weeks, this_week)
        with self._database.read() as connection:
            rows = connection.execute(_SINCE, place).fetchall()
            is_short = any(row["top"].startswith(_LONG) for row in rows)
            names = _long_names(connection, question_id) if is_short else {}
        by_number: dict[int, Week] = {}
        for week_number, counted_as, decisions, confidence, squares in rows:
            week = by_number.setdefault(week_number, Week(week_number, {}, 0.0))
            top = names.get(counted_as, counted_as)
            # Earlier versions counted long names as they are.
            week.tops[top] = week.tops.get(top, 0) + decisions
            week.confidence += confidence
            known = week.squares is not None and squares is not None
            week.squares = week.squares + squares if known else None
        return list(by_number.values())

    def first_rows(self, numbers: Sequence[int]) -> list[int]:
        """The row of the first decision since each of these weeks began. Raises `StorageError`."""
        with self._database.read() as connection:
            return [first_row(connection, begins_at(number)) for number in numbers]


def number(milliseconds: int) -> int:
    """Which week, counted from Monday, 29 December 1969, a moment in unix time lies in."""
    return (milliseconds // DAY_MS + _DAYS_BEFORE_UNIX_TIME) // 7


def first_row(connection: sqlite3.Connection, since: int) -> int:
    """The first row of a decision since a moment, found by its id as these grow with the rows."""
    row = connection.execute(_FIRST, (ids.earliest(since),)).fetchone()
    return _END if row is None else int(row[0])


def begins_at(week: int) -> int:
    """When a week begins, in unix milliseconds."""
    return (week * 7 - _DAYS_BEFORE_UNIX_TIME) * DAY_MS


def tops() -> Names:
    """The top answers of a question in a week: twenty options may be selected in a million ways."""
    return Names(_KNOWN, _HOW_MANY)


def add(
    connection: sqlite3.Connection,
    week: int,
    names: Names,
    answers: Iterable[tuple[str, int, str, float]],
) -> None:
    """Count `answers` of one week: (project, question row, top answer, its raw probability).

    A week counts so many sets of options by themselves as `names` has room for; further ones, and
    long ones, in groups. Options with long names are counted under what stands for them.
    """
    given = list(answers)
    several = [
        ((project, row, week), top)
        for project, row, top, _ in given
        if top.startswith(_SEVERAL) and len(top) <= NAME_CHARS
    ]
    named = dict(zip(several, names.of(connection, several), strict=True))
    rows = []
    for project, row, answer, confidence in given:
        top = answer
        if answer.startswith(_SEVERAL) and named.get(((project, row, week), answer)) != answer:
            top = _group(answer)
        elif len(answer) > NAME_CHARS:
            top = _shortened(answer)
        rows.append((project, row, week, top, 1, confidence, confidence**2))
    execute(connection, _ADD, rows)


def _group(top: str) -> str:
    """The group that counts a set of options; a group is its own."""
    if top.startswith(_GROUP):
        return top
    number = int.from_bytes(hashlib.sha256(top.encode()).digest()[:4], "big") % _GROUPS
    return f"{_GROUP}{number}]"


def _shortened(option: str) -> str:
    """What stands for an option with a long name."""
    return f"{_LONG}{hashlib.sha256(option.encode()).hexdigest()[:_LONG_DIGITS]}]"


def _long_names(connection: sqlite3.Connection, question_id: int) -> Mapping[str, str]:
    """The options of a wording by what stands for them."""
    (definition,) = connection.execute(_DEFINITION, (question_id,)).fetchone()
    options = json.loads(definition).get("options", ())
    return {_shortened(option): option for option in options if len(option) > NAME_CHARS}


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return sums
