"""Weekly sums of what was answered, kept with every decision, so that drift stays cheap."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from svc.store.database import Database

DAY_MS = 86_400_000
_FIRST_MONDAY = date(1969, 12, 29)  # of week 0
_TO_MONDAY = 3  # days from there to the start of unix time

_ADD = (
    "INSERT INTO weeks (project, question_id, week, top, decisions, confidence) "
    "VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT DO UPDATE SET "
    "decisions = decisions + 1, confidence = confidence + excluded.confidence"
)
_SINCE = (
    "SELECT week, top, decisions, confidence FROM weeks "
    "WHERE project = ? AND question_id = ? AND week > ? AND week <= ? ORDER BY week, top"
)


@dataclass(slots=True)
class Week:
    """What one question came to in an ISO week."""

    number: int
    counts: dict[str, int]  # decisions by top answer; all under "" for extracted values
    confidence: float  # the sum over them

    @property
    def name(self) -> str:
        """`YYYY-Www`, as ISO 8601 has it."""
        monday = _FIRST_MONDAY + timedelta(weeks=self.number)
        return "{}-W{:02}".format(*monday.isocalendar())


class Weeks:
    """Reads the sums."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, project: str, question_id: int, weeks: int, now_ms: int) -> list[Week]:
        """The last `weeks` weeks, this one included, oldest first, without those that had none.

        Raises `StorageError`.
        """
        this_week = number(now_ms)
        place = (project, question_id, this_week - weeks, this_week)
        with self._database.read() as connection:
            rows = connection.execute(_SINCE, place).fetchall()
        found: dict[int, Week] = {}
        for week, top, decisions, confidence in rows:
            one = found.setdefault(week, Week(week, {}, 0.0))
            one.counts[top] = decisions
            one.confidence += confidence
        return list(found.values())


def number(milliseconds: int) -> int:
    """Which week, counted from Monday, 29 December 1969, a moment in unix time lies in."""
    return (milliseconds // DAY_MS + _TO_MONDAY) // 7


def add(
    connection: sqlite3.Connection, week: int, answers: Iterable[tuple[str, int, str, float]]
) -> None:
    """Count `answers` of one week: (project, question row, top answer, its raw probability)."""
    rows = [(project, row, week, top, confidence) for project, row, top, confidence in answers]
    connection.executemany(_ADD, rows)
