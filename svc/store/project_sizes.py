"""How many bytes a project may fill, and how many it does.

Its decisions count, the wordings and keys of questions that they brought, what challengers answered
to them, its jobs with their rows, and the answers that are kept for repeats.

Only projects with a limit are counted.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svc.phrases import quoted
from svc.store.database import Database
from svc.store.errors import ProjectFull

# What a decision fills beside its texts and images, with its places in indexes.
ROW_BYTES = 600

# What each of its questions fills in it, with its place in an index.
QUESTION_BYTES = 16

# What a wording of a question fills beside itself, with its sums.
WORDING_ROW_BYTES = 400

# What a key of a question fills beside itself and the name of its project, which stand in the table
# and in its index, and beside those long ones, the end of which SQLite puts on a page of its own.
ASKED_ROW_BYTES, _ASKED_TIMES = 80, 2
_LONG_KEY_BYTES, _PAGE_BYTES = 980, 4_096

# What a job fills beside its rows.
JOB_BYTES = 300

# What a row of a job fills beside the caller's id and the error, if it has one.
JOB_ROW_BYTES = 50

# What a challenger's answer fills beside its reading and its fields or its error.
CHALLENGER_ROW_BYTES = 80

# What an answer that is kept for repeats fills beside itself.
KEPT_ROW_BYTES = 150

# The same of the rows of a table, as SQL.
DECISION_SIZE = (
    "length(CAST(answers AS BLOB)) + length(CAST(readings AS BLOB)) + coalesce(length(images), 0) "
    "+ coalesce(length(CAST(tags AS BLOB)), 0) + coalesce(length(CAST(ref AS BLOB)), 0) "
    "+ length(CAST(model AS BLOB)) + coalesce(length(CAST(provider_models AS BLOB)), 0) "
    f"+ {QUESTION_BYTES} * (1 + length(question_ids) - length(replace(question_ids, ',', ''))) "
    f"+ {ROW_BYTES}"
)
WORDING_SIZE = f"length(CAST(definition AS BLOB)) + {WORDING_ROW_BYTES}"
_KEY_BYTES = "length(CAST(project || key AS BLOB))"
ASKED_SIZE = (
    f"{_ASKED_TIMES} * ({_KEY_BYTES} + iif({_KEY_BYTES} > {_LONG_KEY_BYTES}, {_PAGE_BYTES}, 0)) "
    f"+ {ASKED_ROW_BYTES}"
)
JOB_ROW_SIZE = (
    "length(CAST(job_rows.id AS BLOB)) + coalesce(length(CAST(error AS BLOB)), 0) "
    f"+ {JOB_ROW_BYTES}"
)
CHALLENGER_SIZE = (
    "coalesce(length(CAST(p AS BLOB)), 0) + coalesce(length(CAST(answer AS BLOB)), 0) "
    f"+ coalesce(length(error), 0) + {CHALLENGER_ROW_BYTES}"
)

# How old the knowledge may be of which projects are full.
LOOKED_AT_EVERY_S = 1.0

_FULL = "SELECT project FROM project_sizes WHERE bytes + ? > max_bytes"
_LIMITED = "SELECT project, max_bytes - bytes FROM project_sizes"
_ADD = "UPDATE project_sizes SET bytes = bytes + ? WHERE project = ?"
_FREE = "UPDATE project_sizes SET bytes = max(0, bytes - ?) WHERE project = ?"
_ALL = "SELECT project, max_bytes, bytes FROM project_sizes WHERE max_bytes < ? ORDER BY project"
_DROP = "DELETE FROM project_sizes WHERE project = ?"
# Until its sum is known a project may fill what it likes, and what comes and goes is counted from
# here, so that it never falls to 0.
_COUNTING = 2**61
_BEGIN = (
    "INSERT INTO project_sizes (project, max_bytes, bytes) "
    f"VALUES (?, {2 * _COUNTING}, {_COUNTING}) ON CONFLICT DO NOTHING"
)
# Of what, and how many bytes each.
_COUNTED = {
    "decisions": DECISION_SIZE,
    "jobs JOIN job_rows ON job = jobs.seq": JOB_ROW_SIZE,
    "jobs": f"{JOB_BYTES}",
    "asked": ASKED_SIZE,
    "kept_answers": f"coalesce(length(answer), 0) + {KEPT_ROW_BYTES}",
    "challengers JOIN challenger_answers ON challenger = challengers.id": CHALLENGER_SIZE,
}
_SUM = " + ".join(
    f"(SELECT coalesce(sum({size}), 0) FROM {table} WHERE project = :project)"
    for table, size in _COUNTED.items()
)
_SEEN = (
    f"SELECT max_bytes, bytes, {_SUM} + (SELECT coalesce(sum({WORDING_SIZE}), 0) FROM questions "
    "WHERE brought_by = :project) AS sum FROM project_sizes WHERE project = :project"
)
_SET = (
    "UPDATE project_sizes SET max_bytes = :most, bytes = max(0, bytes + :sum - :bytes) "
    "WHERE project = :project AND max_bytes = :max_bytes"
)


@dataclass(frozen=True, slots=True)
class ProjectSize:
    """The limit of a project and what it fills, in bytes."""

    project: str
    max_bytes: int
    bytes: int


class ProjectSizes:
    """Sets limits, and says early which projects are full."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._database = database
        self._clock = clock
        self._full: frozenset[str] = frozenset()
        self._due = 0.0

    def set(self, project: str, max_bytes: int | None) -> None:
        """Bound what the project fills, None for no bound.

        All its decisions are read once, while others write. Raises `StorageError`.
        """
        if max_bytes is None:
            self._write(_DROP, (project,))
            return
        # Another command may set it meanwhile.
        while not self._counted(project, max_bytes):
            pass

    def all(self) -> list[ProjectSize]:
        """The projects that have a limit, by name. Raises `StorageError`."""
        return [ProjectSize(*row) for row in self._database.rows(_ALL, _COUNTING)]

    def _counted(self, project: str, max_bytes: int) -> bool:
        """Set the limit with what the project fills; False where somebody else did meanwhile.

        From the first step on every process counts what comes and goes, so that the last one adds
        what there was when it was looked for, less what was counted until then.
        """
        self._write(_BEGIN, (project,))
        with self._database.read() as connection:
            seen = connection.execute(_SEEN, {"project": project}).fetchone()
        return seen is not None and self._write(
            _SET, {**dict(seen), "project": project, "most": max_bytes}
        )

    def _write(self, statement: str, values: Mapping[str, object] | tuple[object, ...]) -> bool:
        """Whether it changed a row."""
        return self._database.write(
            lambda connection: connection.execute(statement, values).rowcount == 1
        )

    def check(self, project: str) -> None:
        """Raise `ProjectFull` where not even a short decision fits, as of the last second.

        Raises `StorageError`.
        """
        now = self._clock()
        if now >= self._due:
            self._due = now + LOOKED_AT_EVERY_S
            self._full = frozenset(row[0] for row in self._database.rows(_FULL, ROW_BYTES))
        if project in self._full:
            raise full(project)


class Room:
    """What is left to each project with a limit, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._left: dict[str, int] = dict(connection.execute(_LIMITED))

    def is_bounded(self, project: str) -> bool:
        """Whether the project has a limit."""
        return project in self._left

    def takes(self, project: str, *texts: str | None, row_bytes: int = ROW_BYTES) -> bool:
        """Count a row with these texts; False, and not counted, where it does not fit.

        `row_bytes` are what the row fills beside them, by default that of a decision.
        """
        left = self._left.get(project)
        if left is None:
            return True
        size = row_bytes + sum(len((text or "").encode()) for text in texts)
        if size > left:
            return False
        self._left[project] = left - size
        self._connection.execute(_ADD, (size, project))
        return True


def asked_bytes(project: str, key: str) -> int:
    """What the key of a question fills, as `ASKED_SIZE` has it."""
    size = len(f"{project}{key}".encode())
    once = size + (_PAGE_BYTES if size > _LONG_KEY_BYTES else 0)
    return _ASKED_TIMES * once + ASKED_ROW_BYTES


def free(connection: sqlite3.Connection, project: str, size: int) -> None:
    """Count so many bytes of a project no more, inside the transaction that deletes them."""
    connection.execute(_FREE, (size, project))


def full(project: str) -> ProjectFull:
    """The error for the caller."""
    return ProjectFull(
        f"project {quoted(project)} has stored as many bytes as it may; its operator can raise the "
        "limit with `svc project set`"
    )
