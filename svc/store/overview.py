"""Which projects and questions there are, and what their decisions add up to.

All of it is read from sums, so that it costs no more as decisions add up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from svc.store.activity import By, Spans
from svc.store.database import Database

# From the sums of days, which are kept for ever. Their span and what they are by are written out,
# since an index of them alone has the projects. Where the decisions of one were all deleted, the
# last day that had some is known.
_PROJECTS = (
    "SELECT project, sum(decisions), "
    "(SELECT coalesce(sum(labels), 0) FROM learned WHERE learned.project = activity.project), "
    "coalesce((SELECT created_at FROM decisions WHERE decisions.project = activity.project "
    "ORDER BY seq DESC LIMIT 1), max(iif(decisions, start, 0)) * 1000), "
    "sum(cost_usd) FROM activity INDEXED BY activity_by_project "
    f"WHERE span = {Spans.DAY:d} AND by = '{By.MODEL}' AND project > ? {{}} "
    "GROUP BY project HAVING sum(decisions) ORDER BY project LIMIT ?"
)
_QUESTIONS = (
    "SELECT key, asked.question_id, definition, (SELECT coalesce(sum(decisions), 0) FROM weeks "
    "WHERE weeks.project = asked.project AND weeks.question_id = asked.question_id), "
    "coalesce(labels, 0), calibrator, last_at FROM asked "
    "JOIN questions ON questions.id = asked.question_id "
    "LEFT JOIN learned ON learned.project = asked.project AND learned.digest = questions.digest "
    "WHERE asked.project = ? AND key >= ? ORDER BY key LIMIT ?"
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

    def __init__(self, database: Database) -> None:
        self._database = database

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

        They end where their definitions and keys have more than `most_chars` together, but not
        before the first. Raises `StorageError`.
        """
        with self._database.read() as connection:
            rows = connection.execute(_QUESTIONS, (project, first, limit))
            return list(_leading(map(_question, rows), most_chars))


def _question(row: sqlite3.Row) -> QuestionOverview:
    return QuestionOverview(*row)


def _leading(found: Iterator[QuestionOverview], most_chars: int) -> Iterator[QuestionOverview]:
    for number, one in enumerate(found):
        # A character of a key may take four bytes.
        most_chars -= len(one.definition) + len(one.key.encode())
        if number and most_chars < 0:
            return
        yield one
