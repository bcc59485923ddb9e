"""Which questions of a project have decisions that wait for reviewers."""

from __future__ import annotations

import time
from collections.abc import Callable

from svc.store.database import Database
from svc.store.kept_names import NAME_CHARS
from svc.store.review import MOST_AHEAD_MS, returned

# Decisions that came after the queue's last look wait too. One that somebody gave back does not:
# else a question would be due until everybody has seen it.
# Many keys may have one wording, whose queue is looked through once.
_DUE = f"""
WITH waiting AS MATERIALIZED (
    SELECT question_id FROM review_frames WHERE project = :project AND (
        EXISTS (
            SELECT 1 FROM review_items AS item WHERE item.project = :project
            AND item.question_id = review_frames.question_id AND state = 0
        )
        OR EXISTS (
            SELECT 1 FROM ({returned("review_frames.question_id")}) AS item
            WHERE NOT EXISTS (
                SELECT 1 FROM judgements WHERE judgements.decision_seq = item.decision_seq
                AND judgements.key = item.key AND label IS NULL
            )
        )
    )
)
SELECT asked.key FROM asked JOIN review_frames USING (project, question_id)
WHERE project = :project AND length(asked.key) <= {NAME_CHARS} AND (
    looked_at NOT BETWEEN last_at AND :now + {MOST_AHEAD_MS}
    OR question_id IN (SELECT question_id FROM waiting)
) ORDER BY asked.key LIMIT :most
"""


class ReviewDue:
    """Looks at the queues of questions that somebody has reviewed, and changes nothing."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock

    def questions(self, project: str, most: int) -> list[str]:
        """The keys of questions that have something to review, the first `most` of them.

        Those with longer keys than `NAME_CHARS` are left out. Raises `StorageError`.
        """
        values = {"project": project, "now": int(self._clock() * 1000), "most": most}
        with self._database.read() as connection:
            return [row[0] for row in connection.execute(_DUE, values)]
