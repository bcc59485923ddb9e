"""The promises that every look at the review queue shows, over a real database."""

from __future__ import annotations

from contextlib import closing

from svc.learning import Learner, Reporter
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.schemas.feedback import Feedback
from svc.store import Labels, Place, QuestionVersions, TrainingData, Weeks
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.records import record

NOUL = TYPES["noul"].load({"type": "noul", "instructions": "Is it late?"})


class CountedLabels(Labels):
    """Counts how often all labels of a question are read."""

    reads = 0

    def training_data(self, place: Place, most: int, first: int = 0) -> TrainingData | None:
        self.reads += 1
        return super().training_data(place, most, first)


def test_labels_are_read_again_only_when_there_are_others(database: Database) -> None:
    labels, versions = CountedLabels(database), QuestionVersions(database)
    decisions, reporter = Decisions(database), Reporter(versions, labels, Weeks(database))
    with closing(Learner(decisions, versions, labels)) as learner:
        for number in range(1, 3):
            asked = AskedQuestion("q", NOUL.digest, NOUL.definition_json, {"p": [0.9]}, "true", 0.9)
            learner.label(Feedback(decisions.add(record(asked)), "q", True))
            promised = [reporter.promises("default", "q") for _ in range(3)]
            assert [one["labels"] for one in promised] == [number] * 3
            assert labels.reads == number
