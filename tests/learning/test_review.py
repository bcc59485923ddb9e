"""What a look at the review queue reads, over a real database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from svc.learning import Reporter, ReviewDesk
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.store import Judgements, Labels, QuestionVersions, ReviewQueue, Weeks
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.records import record

NOUL = TYPES["noul"].load({"type": "noul", "instructions": "Is it late?"})


class NeverWhole(Decisions):
    """Of a decision nothing but one answer may be read."""

    def several(self, decision_ids: Iterable[str], most_chars: float = 0) -> Never:
        raise AssertionError("a whole decision was read")


def test_answers_are_shown_without_reading_the_whole_decisions(database: Database) -> None:
    """A decision may have 64 answers of 255 options, and what each of five models said of these."""
    versions, decisions = QuestionVersions(database), NeverWhole(database)
    reporter = Reporter(versions, Labels(database), Weeks(database))
    desk = ReviewDesk(decisions, versions, reporter, ReviewQueue(database), Judgements(database))
    asked = AskedQuestion("q", NOUL.digest, NOUL.definition_json, {"p": [0.9]}, "true", 0.9)
    given = record(asked)
    made = decisions.add(given)
    (item,) = desk.hand_out("default", "q", "ann", 1, shown=True)["items"]
    assert (item["id"], item["answer"]) == (made, given.answers["q"].fields)
