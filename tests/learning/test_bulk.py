"""What labels in bulk read of the decisions that they are about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from svc import limits
from svc.learning.bulk import checked
from svc.learning.checking import Checks
from svc.schemas import BulkFeedback, LabelledLine
from svc.store import QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions, StoredDecision
from tests.learning.test_challenged import ANIMAL
from tests.store.records import AskedQuestion, record


class Counted(Decisions):
    """Counts how often each decision is read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.read: Counter[str] = Counter()

    def several(
        self, decision_ids: Iterable[str], most_chars: float = math.inf
    ) -> tuple[dict[str, StoredDecision], float]:
        listed = list(decision_ids)
        self.read.update(listed)
        return super().several(listed, most_chars)


def test_a_decision_is_read_once_however_its_lines_lie_among_others(database: Database) -> None:
    decisions = Counted(database)
    asked = AskedQuestion("q", ANIMAL.digest, ANIMAL.definition_json, {"p": [0.7, 0.3]})
    count = limits.BULK_DECISIONS_AT_ONCE + 10
    made = [decisions.add(record(asked, ref=str(number))) for number in range(count)]
    by_id = [LabelledLine({"q": "a"}, id=one, number=at) for at, one in enumerate(made, 1)]
    by_ref = [LabelledLine({"q": "b"}, ref=str(at), number=count + at + 1) for at in range(count)]
    given = BulkFeedback(lines=[*by_id, *by_ref], errors=[], count=2 * count)
    checks = Checks(QuestionVersions(database), 0)
    labels, errors = checked(given, decisions, checks, "default", None)
    assert errors == []
    assert decisions.read == Counter(made)
    # A later line of the request corrects an earlier one.
    last = {one.seq: one.label for one in labels}
    assert (len(labels), set(last.values())) == (2 * count, {"b"})
