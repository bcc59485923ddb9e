"""Which questions of a project have decisions that wait for reviewers."""

from __future__ import annotations

import time
from collections.abc import Callable

from svc.store.database import Database
from svc.store.kept_names import NAME_CHARS
from svc.store.question_versions import keys_of
from svc.store.review import MOST_AHEAD_MS, returned

# The wordings of a project that are looked at, beginning with the newest, and the keys of each, by
# name: a look takes tens of milliseconds at most, whatever callers have asked.
WORDINGS, KEYS = 1_000, 20

# Decisions that came after the queue's last look wait too. One that somebody gave back does not:
# else a question would be due until everybody has seen it.
# Many keys may have one wording, whose queue is looked through once.
_DUE = f"""
WITH frames AS MATERIALIZED (
    SELECT question_id, looked_at FROM review_frames WHERE project = :project
    ORDER BY question_id DESC LIMIT {WORDINGS}
), looked_through AS MATERIALIZED (
    SELECT question_id, looked_at, (
        EXISTS (
            SELECT 1 FROM review_items AS item WHERE item.project = :project
            AND item.question_id = frames.question_id AND state = 0
        )
        OR EXISTS (
            SELECT 1 FROM ({returned("frames.question_id")}) AS item
            WHERE NOT EXISTS (
                SELECT 1 FROM judgements WHERE judgements.decision_seq = item.decision_seq
                AND judgements.key = item.key AND label IS NULL
            )
        )
    ) AS waits FROM frames
)
SELECT due.value FROM looked_through AS frame CROSS JOIN json_each((
    SELECT json_group_array(key) FROM (
        {keys_of("frame.question_id", KEYS, "key, last_at")}
    ) WHERE length(key) <= {NAME_CHARS} AND (
        waits OR looked_at NOT BETWEEN last_at AND :now + {MOST_AHEAD_MS}
    )
)) AS due ORDER BY due.value LIMIT :most
"""


class ReviewDue:
    """Looks at the queues of questions that somebody has reviewed, and changes nothing."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock

    def questions(self, project: str, most: int) -> list[str]:
        """The keys of questions that have something to review, the first `most` of them.

        Those with longer keys than `NAME_CHARS` are left out, and so is what is beyond `WORDINGS`
        and `KEYS`. Raises `StorageError`.
        """
        values = {"project": project, "now": int(self._clock() * 1000), "most": most}
        with self._database.read() as connection:
            return [row[0] for row in connection.execute(_DUE, values)]
