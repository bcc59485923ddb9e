"""What became of a job's rows, read a page at a time."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from svc import jsontext
from svc.store.project_sizes import JOB_ROW_BYTES
from svc.store.shown import SHOWN, Shape, shown

# What a line of results has beside the row's id and its decision or error.
_LINE_BYTES = 40

# What stands in the results for a row whose decision, or which itself, was deleted. Such a row
# stays in a job that goes on: it would be asked, or asked again.
DELETED_ROW = jsontext.dumps({"type": "not_found", "message": "the decision was deleted"})

# What such a row fills.
DELETED_ROW_BYTES = JOB_ROW_BYTES + len(DELETED_ROW)

_RESULTS = f"""
SELECT job_rows.row, job_rows.id AS row_id, error, debiased, {SHOWN}
FROM job_rows LEFT JOIN decisions ON decisions.seq = decision_seq
WHERE job = ? AND row > ? ORDER BY row
"""


@dataclass(frozen=True, slots=True)
class RowResult:
    """What became of a row: the JSON of its decision, or that of its error."""

    number: int
    id: str
    decision: str | None
    error: str | None

    @property
    def bytes(self) -> int:
        """About how many a line of results has with it."""
        texts = (jsontext.dumps(self.id), self.decision or self.error or "")
        return _LINE_BYTES + sum(len(text.encode()) for text in texts)


def page(
    connection: sqlite3.Connection,
    job: int,
    is_open: bool,
    after: int,
    most_bytes: int,
    shape: Shape,
) -> tuple[list[RowResult], int | None]:
    """As `Jobs.results`, of the job in the row `job`."""
    found: list[RowResult] = []
    for row in connection.execute(_RESULTS, (job, after)):
        if is_open and row["row"] != after + 1:
            break
        result = _result(row, shape)
        most_bytes -= result.bytes
        if found and most_bytes < 0:
            return found, after
        found.append(result)
        after = result.number
    return found, after if is_open else None


def _result(row: sqlite3.Row, shape: Shape) -> RowResult:
    decision = None if row["ulid"] is None else shown(row, shape)
    return RowResult(row["row"], row["row_id"], decision, row["error"])
