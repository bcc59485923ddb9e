"""Who said what of a decision: the last label of each reviewer, also where another's counts now.

Of one question of a decision the last few labels are kept, and the last few times that it was given
back without one, as callers may make up any number of names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from svc import limits
from svc.store import ids
from svc.store.database import Database
from svc.store.review import Wording, give_back
from svc.store.rows import execute

_ADD = (
    "WITH given (seq, key, project, question_id, reviewer, label, at) AS (VALUES {}) "
    "INSERT INTO judgements "
    "(decision_seq, key, project, question_id, reviewer, label, created_at) "
    # It may have been deleted since it was read.
    "SELECT * FROM given WHERE EXISTS (SELECT 1 FROM decisions WHERE decisions.seq = given.seq)"
)
_TAKE_BACK = (
    "WITH given (seq, key, reviewer) AS (VALUES {}) DELETE FROM judgements WHERE id IN "
    "(SELECT id FROM given CROSS JOIN judgements AS said ON said.decision_seq = seq "
    "AND said.key = given.key AND said.reviewer = given.reviewer WHERE label IS NOT NULL)"
)
# Labels and decisions given back are counted apart.
_TRIM = (
    "WITH given (seq, key, back) AS (VALUES {}) DELETE FROM judgements WHERE id IN (SELECT id FROM "
    "(SELECT id, row_number() OVER (PARTITION BY decision_seq, said.key ORDER BY id DESC) AS place "
    "FROM given CROSS JOIN judgements AS said ON said.decision_seq = seq AND said.key = given.key "
    f"WHERE (label IS NULL) = back) WHERE place > {limits.JUDGEMENTS_KEPT})"
)
_SKIPPED = (
    "SELECT count(*) FROM (SELECT DISTINCT decision_seq, key FROM judgements "
    f"WHERE project = ? AND question_id = ? AND label IS NULL LIMIT {limits.REVIEW_COUNTED})"
)
# Of so many decisions that several labelled, the newest first, it is read what they said.
LOOKED_AT = 2_000
# The newest judgement that is not looked through, as there are too many with it or they are too
# long together. None before it is read.
_FIRST_TOO_MANY = (
    "SELECT id FROM (SELECT id, count(*) OVER said AS judgements, "
    "total(length(key) + coalesce(length(label), 0)) OVER said AS chars "
    "FROM judgements WHERE project = ?1 AND question_id = ?2 "
    "WINDOW said AS (ORDER BY id DESC ROWS UNBOUNDED PRECEDING)) "
    "WHERE judgements > ?3 OR chars > ?4 LIMIT 1"
)
_SEVERAL = (
    "SELECT decision_seq, key FROM judgements WHERE project = ?1 AND question_id = ?2 "
    f"AND id > coalesce(({_FIRST_TOO_MANY}), 0) "
    "AND label IS NOT NULL GROUP BY decision_seq, key HAVING count(DISTINCT reviewer) > 1 "
    f"AND count(DISTINCT label) > 1 ORDER BY decision_seq DESC LIMIT {LOOKED_AT}"
)
_WORDS = (
    "SELECT decisions.id, said.key, reviewer, said.label, max(said.id), said.created_at, "
    "labels.label FROM judgements AS said JOIN decisions ON seq = said.decision_seq "
    "LEFT JOIN labels ON labels.decision_seq = said.decision_seq AND labels.key = said.key "
    "WHERE said.decision_seq = ? AND said.key = ? AND said.label IS NOT NULL "
    "GROUP BY reviewer ORDER BY max(said.id)"
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reviewer said last of one question of a decision; labels are JSON.

    `counts` is the label that is in effect. `created_at` is in unix milliseconds.
    """

    id: str
    key: str
    reviewer: str
    label: str
    created_at: int
    counts: str | None


class Judgements:
    """Keeps and finds them."""

    def __init__(
        self,
        database: Database,
        depth: int = limits.JUDGEMENTS_READ,
        chars: int = limits.JUDGEMENTS_CHARS,
    ) -> None:
        """Of a question the last `depth` judgements are looked through.

        Keys and labels of these have no more than `chars` characters together. Of the decisions
        that are found so as much is read, but at least one decision.
        """
        self._database = database
        self._depth, self._chars = depth, chars

    def skip(self, wording: Wording, seq: int, key: str, reviewer: str, now_ms: int) -> bool:
        """Note that a reviewer gives a decision back unlabelled; False for one who never had it.

        Raises `StorageError`.
        """
        said = (seq, key, *wording, reviewer, None, now_ms)
        return self._database.write(partial(_skip, said))

    def skipped(self, wording: Wording) -> int:
        """How many decisions were ever given back, as far as is counted. Raises `StorageError`."""
        with self._database.read() as connection:
            return int(connection.execute(_SKIPPED, wording).fetchone()[0])

    def of_several(
        self,
        wording: Wording,
        most: int,
        differ: Callable[[Sequence[Judgement]], bool] = lambda _said: True,
    ) -> list[list[Judgement]]:
        """The judgements of decisions that several reviewers labelled in different ways.

        At most `most` decisions, the newest first, whose judgements `differ`. Raises
        `StorageError`.
        """
        with self._database.read() as connection:
            place = (*wording, self._depth, self._chars)
            found = connection.execute(_SEVERAL, place).fetchall()
            several = _of_each(connection, found, self._chars)
            return list(islice(filter(differ, several), most))


def add(connection: sqlite3.Connection, labels: Sequence[Sequence[Any]]) -> None:
    """Keep which labels reviewers gave, in order: of each the values of all columns but the id."""
    last: dict[tuple[int, str, str], Sequence[Any]] = {}
    for said in labels:
        seq, key, _, _, reviewer, *_ = said
        # Taken out first, so that it stands behind those that were said meanwhile.
        last.pop((seq, key, reviewer), None)
        last[seq, key, reviewer] = said
    execute(connection, _TAKE_BACK, [*last])
    execute(connection, _ADD, [*last.values()])
    execute(connection, _TRIM, sorted({(seq, key, False) for seq, key, _ in last}))


def _skip(said: Sequence[Any], connection: sqlite3.Connection) -> bool:
    seq, key, _, _, reviewer, *_ = said
    had_it = give_back(connection, seq, key, reviewer)
    if had_it:
        execute(connection, _ADD, [said])
        execute(connection, _TRIM, [(seq, key, True)])
    return had_it


def _of_each(
    connection: sqlite3.Connection, decisions: Iterable[Sequence[Any]], chars: int
) -> Iterator[list[Judgement]]:
    """What was said of each decision, up to the one with which it is `chars` characters."""
    for decision in decisions:
        said = _of(connection, decision)
        yield said
        # What was said before the last judgements of the question is among it.
        chars -= sum(len(one.key) + len(one.label) + len(one.counts or "") for one in said)
        if chars <= 0:
            return


def _of(connection: sqlite3.Connection, decision: Sequence[Any]) -> list[Judgement]:
    rows = connection.execute(_WORDS, tuple(decision)).fetchall()
    return [
        Judgement(ids.text(ulid), key, reviewer, label, created_at, counts)
        for ulid, key, reviewer, label, _, created_at, counts in rows
    ]
