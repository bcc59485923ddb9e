"""What the report says of labels that nobody gave a chance for, over a real database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from svc.jsontext import JsonObject
from svc.learning import Learner, Reporter, sampling
from svc.questions import TYPES, Question
from svc.records import Answer, AskedQuestion, Source
from svc.schemas.feedback import Feedback
from svc.store import Labels, QuestionVersions, Weeks
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.terms import Sampling
from tests.store.records import record

WEEK_S = 7 * 86_400
CHOICE = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"b": "", "a": ""}, "escape": False}
)
CITY = TYPES["text"].load({"type": "text", "instructions": "Which city?"})


class Archive:
    """Three weeks of decisions, some of them labelled, and their report."""

    def __init__(self, database: Database) -> None:
        self.now = 1_795_000_000.0
        clock = lambda: self.now  # noqa: E731
        labels, versions = Labels(database), QuestionVersions(database)
        self._decisions = Decisions(database, clock)
        self.learner = Learner(self._decisions, versions, labels, clock, at_once=0)
        self._reporter = Reporter(versions, labels, Weeks(database), clock)
        self._random = random.Random(3)

    def fill(
        self, picked: Callable[[float], float], of: Question = CHOICE, **sampled: object
    ) -> None:
        """Labels with a chance that is `picked` by the confidence."""
        for number in range(240):
            p = 0.5 + self._random.random() / 2
            raw = [p, 1 - p] if number % 3 else [1 - p, p]
            reading = {"p": raw if of is CHOICE else [p]}
            top = ("a" if number % 3 else "b") if of is CHOICE else ""
            question = AskedQuestion("q", of.digest, of.definition_json, reading, top, p)
            answer = Answer(Source.MODELS, {"value": "Rome"}, top="Rome", confidence=p)
            answers = {} if of is CHOICE else {"answers": {"q": answer}}
            decision_id = self._decisions.add(record(question, **answers))
            if self._random.random() < picked(p):
                label = "a" if of is CHOICE else "Rome"
                self.learner.label(Feedback(decision_id, "q", label, **sampled))  # type: ignore[arg-type]
            self.now += WEEK_S / 80

    def report(self) -> JsonObject:
        found: JsonObject = self._reporter.calibration("default", "q")["sampling"]
        return found


@pytest.fixture
def archive(database: Database) -> Iterator[Archive]:
    made = Archive(database)
    yield made
    made.learner.close()


def test_labels_of_unsure_answers_are_told_from_a_random_draw(archive: Archive) -> None:
    archive.fill(lambda p: 0.5 if p < 0.7 else 0.03)
    report = archive.report()
    test = report["test"]
    assert test["decisions"] == 240
    assert test["confidence"]["p"] < 1e-4 and test["confidence"]["change"] < -0.05
    assert test["mix"]["p"] > 0.01
    assert test["differs"]
    assert report["meaning"] == sampling.DIFFERENT
    assert test["labels"] == report["labels"]["unknown"]


def test_labels_that_were_drawn_at_random_look_like_the_others(archive: Archive) -> None:
    archive.fill(lambda p: 0.3)
    report = archive.report()
    assert not report["test"]["differs"]
    assert report["meaning"] == sampling.NOBODY_SAID


def test_what_is_called_random_is_tested_too(archive: Archive) -> None:
    archive.fill(lambda p: 0.5 if p < 0.7 else 0.03, sampled=Sampling.RANDOM)
    assert archive.report()["meaning"] == sampling.DIFFERENT


def test_labels_whose_chance_is_known_need_no_test(archive: Archive) -> None:
    archive.fill(lambda p: 0.5 if p < 0.7 else 0.03, sampled=Sampling.QUEUE, chance=0.5)
    report = archive.report()
    assert (report["test"], report["meaning"]) == (None, sampling.ALL_DRAWN)


def test_extracted_values_are_compared_by_confidence_alone(archive: Archive) -> None:
    archive.fill(lambda p: 0.5 if p < 0.7 else 0.03, of=CITY)
    test = archive.report()["test"]
    assert test["mix"] is None
    assert test["differs"]


def test_without_labels_there_is_nothing_to_test(archive: Archive) -> None:
    archive.fill(lambda p: 0.0)
    assert archive.report() == {
        "labels": {"random": 0, "queue": 0, "other": 0, "unknown": 0},
        "meaning": None,
        "test": None,
    }
