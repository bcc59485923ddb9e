"""Which projects and questions there are, and what their decisions add up to.

All of it is read from sums, so that it costs no more as decisions add up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from svc import limits
from svc.store.database import Database

# Where the decisions of one were all deleted, the last day that had some is known.
_PROJECTS = (
    "SELECT project, decisions, labels, coalesce((SELECT created_at FROM decisions "
    "WHERE decisions.project = projects.project ORDER BY seq DESC LIMIT 1), last_day * 1000), "
    "cost_usd FROM projects WHERE project > ? {} ORDER BY project LIMIT ?"
)
_QUESTIONS = (
    "SELECT key, asked.question_id, definition, coalesce(labels, 0), calibrator, last_at "
    "FROM asked JOIN questions ON questions.id = asked.question_id "
    "LEFT JOIN learned ON learned.project = asked.project AND learned.digest = questions.digest "
    "WHERE asked.project = ? AND key >= ? ORDER BY key LIMIT ?"
)
# A question's answers, and of how many sums.
_ANSWERS = (
    "SELECT coalesce(sum(decisions), 0), count(*) FROM weeks WHERE project = ? AND question_id = ?"
)


@dataclass(frozen=True, slots=True)
class ProjectOverview:
    """What is stored of a project; `last_at` is in unix milliseconds."""

    project: str
    decisions: int
    labels: int
    last_at: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class QuestionOverview:
    """What is stored of the newest wording of a question.

    `question_id` is its row, `definition` its JSON, `decisions` counts the answers of models, and
    `calibrator` is the JSON of those in effect. `last_at` is in unix milliseconds, a minute too
    early at most, and None where it was not noted.
    """

    key: str
    question_id: int
    definition: str
    decisions: int
    labels: int
    calibrator: str | None
    last_at: int | None


class Overview:
    """Reads the sums."""

    def __init__(self, database: Database, sums: int = limits.ANSWERS_SUMS) -> None:
        """A page of questions ends once their answers are counted in more than `sums` sums."""
        self._database, self._sums = database, sums

    def projects(self, only: str | None, after: str, limit: int) -> list[ProjectOverview]:
        """The first projects by name after `after`, or `only` this one. Raises `StorageError`."""
        one, names = ("", ()) if only is None else ("AND project = ?", (only,))
        with self._database.read() as connection:
            rows = connection.execute(_PROJECTS.format(one), (after, *names, limit))
            return [ProjectOverview(*row) for row in rows]

    def questions(
        self, project: str, first: str, limit: int, most_chars: int
    ) -> list[QuestionOverview]:
        """A project's questions by key, from the key `first` on.

        They end where their definitions and keys have more than `most_chars` together, or their
        answers too many sums, but not before the first. Raises `StorageError`.
        """
        with self._database.read() as connection:
            return list(_leading(connection, (project, first, limit), most_chars, self._sums))


def _leading(
    connection: sqlite3.Connection, place: tuple[str, str, int], most_chars: int, most_sums: int
) -> Iterator[QuestionOverview]:
    project, *_ = place
    for number, row in enumerate(connection.execute(_QUESTIONS, place)):
        key, question_id, definition, labels, calibrator, last_at = row
        # A character of a key may take four bytes.
        most_chars -= len(definition) + len(key.encode())
        if number and min(most_chars, most_sums) < 0:
            return
        decisions, sums = connection.execute(_ANSWERS, (project, question_id)).fetchone()
        most_sums -= sums
        yield QuestionOverview(key, question_id, definition, decisions, labels, calibrator, last_at)
