"""Deletes decisions with everything that hangs on them, a few at a time.

Sums over time, calibrators and the wording of questions that have them stay.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence

from svc.store import numbers, places
from svc.store.job_results import DELETED_ROW, DELETED_ROW_BYTES
from svc.store.numbers import Numbered
from svc.store.project_sizes import CHALLENGER_SIZE, DECISION_SIZE, JOB_ROW_SIZE, free
from svc.store.project_sums import add_labels
from svc.store.rows import execute, listed

# How many decisions one transaction deletes at most. Others wait for it.
TOGETHER = 100

# How many decisions that refer to a deleted one for what they say one transaction changes.
REFERRERS = 1_000

_THESE = "IN (SELECT value FROM json_each(?1))"
# The last of those that refer to each is found in their index, however many there are.
_REFERRED = (
    "SELECT value AS whole, (SELECT seq FROM decisions WHERE same_as = value "
    f"AND seq NOT {_THESE} ORDER BY seq DESC LIMIT 1) AS heir "
    "FROM json_each(?1) WHERE heir IS NOT NULL ORDER BY whole"
)
_INHERIT = (
    "UPDATE decisions SET same_as = NULL, (answers, readings) = "
    "(SELECT answers, readings FROM decisions AS whole WHERE whole.seq = ?1) WHERE seq = ?2"
)
_REFER = (
    "UPDATE decisions SET same_as = ?2 WHERE seq IN "
    "(SELECT seq FROM decisions WHERE same_as = ?1 AND seq <> ?2 LIMIT ?3)"
)
_GROW = (
    "UPDATE project_sizes SET bytes = bytes + (SELECT length(CAST(answers AS BLOB)) "
    "+ length(CAST(readings AS BLOB)) FROM decisions WHERE seq = ?1) "
    "WHERE project = (SELECT project FROM decisions WHERE seq = ?1)"
)
_LABELS = (
    "SELECT json_group_array(json_array(project, question_id, labels)) FROM "
    "(SELECT project, question_id, count(*) AS labels FROM labels "
    f"WHERE decision_seq {_THESE} GROUP BY project, question_id)"
)
# The revision says that something changed, to processes that know the labels of before. That is no
# reason to fit anew, so that what was fitted last counts as having seen it.
_FEWER = (
    "WITH given (project, question_id, gone) AS (VALUES {}) "
    "UPDATE learned SET labels = labels - gone, revision = revision + 1, "
    "tried = iif(tried, tried + 1, 0) "
    "FROM given JOIN questions ON questions.id = given.question_id "
    "WHERE learned.project = given.project AND learned.digest = questions.digest"
)
_SETTLE_ROWS = (
    f"UPDATE job_rows SET decision_seq = NULL, debiased = NULL, id = '', error = ?2 "
    f"WHERE decision_seq {_THESE} AND "
    "job IN (SELECT seq FROM jobs WHERE status IN ('waiting', 'running')) "
    "RETURNING (SELECT project FROM jobs WHERE seq = job)"
)
_DELETE = (
    f"DELETE FROM labels WHERE decision_seq {_THESE}",
    f"DELETE FROM judgements WHERE decision_seq {_THESE}",
    f"DELETE FROM review_items WHERE decision_seq {_THESE}",
    f"DELETE FROM job_rows WHERE decision_seq {_THESE}",
    f"DELETE FROM challenger_answers WHERE decision_seq {_THESE}",
    # One among these may refer to another of them.
    f"UPDATE decisions SET same_as = NULL WHERE seq {_THESE} AND same_as IS NOT NULL",
)
_SIZES = f"SELECT project, sum({DECISION_SIZE}) FROM decisions WHERE seq {_THESE} GROUP BY project"
_SIZES_OF_ROWS = (
    f"SELECT project, sum({JOB_ROW_SIZE}) FROM job_rows JOIN jobs ON jobs.seq = job "
    f"WHERE decision_seq {_THESE} GROUP BY project"
)
_SIZES_OF_CHALLENGERS = (
    f"SELECT project, sum({CHALLENGER_SIZE}) FROM challenger_answers "
    f"JOIN challengers ON id = challenger WHERE decision_seq {_THESE} GROUP BY project"
)
_DELETE_DECISIONS = f"DELETE FROM decisions WHERE seq {_THESE}"


def erase(connection: sqlite3.Connection, seqs: Sequence[int], referrers: int = REFERRERS) -> bool:
    """Delete the decisions in these rows, at most `TOGETHER`, inside a transaction.

    False, and none is deleted yet, where more than `referrers` others refer to them for what they
    say: then it is to be called again. Rows that are not there any more do not matter.
    """
    these = json.dumps(list(seqs))
    if not _pass_on(connection, these, referrers):
        return False
    places.note_last(connection)
    numbers.note_last(connection, Numbered.LABELS)
    _count_labels(connection, these)
    _free(connection, these)
    for (project,) in connection.execute(_SETTLE_ROWS, (these, DELETED_ROW)).fetchall():
        free(connection, project, -DELETED_ROW_BYTES)
    for statement in _DELETE:
        connection.execute(statement, (these,))
    connection.execute(_DELETE_DECISIONS, (these,))
    return True


def _count_labels(connection: sqlite3.Connection, these: str) -> None:
    """Count the labels of these no more."""
    labels = listed(connection, _LABELS, (these,))
    execute(connection, _FEWER, labels)
    of_projects = Counter[str]()
    for project, _, count in labels:
        of_projects[project] -= count
    add_labels(connection, of_projects)


def _free(connection: sqlite3.Connection, these: str) -> None:
    """Count these and what hangs on them no more in what their projects fill."""
    for query in (_SIZES, _SIZES_OF_ROWS, _SIZES_OF_CHALLENGERS):
        for project, size in connection.execute(query, (these,)).fetchall():
            free(connection, project, size)


def _pass_on(connection: sqlite3.Connection, these: str, left: int) -> bool:
    """Have others refer to each other for what they say, no longer to these; False if not all do.

    The last of them gets the text, because it is deleted last.
    """
    for whole, heir in connection.execute(_REFERRED, (these,)).fetchall():
        connection.execute(_INHERIT, (whole, heir))
        connection.execute(_GROW, (heir,))
        left -= connection.execute(_REFER, (whole, heir, max(left, 0))).rowcount
        if left <= 0:
            return False
    return True
