"""When calibrators are fitted; what labels are worth is told by tests/web/test_feedback.py."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import pytest

from svc import limits
from svc.errors import Timeout
from svc.learning.learner import Learner, Turn
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.schemas.feedback import BulkFeedback, Feedback, LabelledLine
from svc.store import StorageError
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.label_records import CalibrationState, NewLabel, Place, TrainingData
from svc.store.labels import Labels
from svc.store.question_versions import QuestionVersions
from tests.clock import Clock
from tests.store.records import record

QUESTION = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"a": "", "b": ""}, "escape": False}
)
PLACE = ("default", QUESTION.digest)


class Unreadable(Labels):
    """Labels that can be stored, but not read."""

    def training_data(self, place: Place, most: int) -> TrainingData | None:
        raise StorageError("for once")


class CountedWrites(Labels):
    """Notes how many labels each transaction was to have."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.at_once: list[int | None] = []

    def add_all(
        self, labels: Sequence[NewLabel], at_once: int | None = None
    ) -> dict[Place, tuple[CalibrationState, int]]:
        self.at_once.append(at_once)
        return super().add_all(labels, at_once)


class Lessons:
    """A learner whose refits are run by hand, as if their time had come."""

    def __init__(
        self,
        database: Database,
        refit_s: float = 5.0,
        at_once: int = 1_000,
        labels: Labels | None = None,
        numbers: int = 1_000_000,
    ) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.decisions, self.labels = Decisions(database), labels or Labels(database)
        self.ids: list[str] = []  # of the decisions that labels were given for
        stores = (self.decisions, QuestionVersions(database), self.labels)
        self.learner = Learner(*stores, self.clock, refit_s, at_once, numbers)

    def give(self, count: int, right: float = 0.6, turn: Turn = nullcontext) -> bool:
        """`count` labels for answers that are 95% sure; whether a calibrator is in effect."""
        calibrated = False
        for number in range(count):
            exact = ("q", QUESTION.digest, QUESTION.definition_json)
            question = AskedQuestion(*exact, {"p": [0.95, 0.05]}, "a", 0.95)
            truth = "a" if (number * 7) % 10 < right * 10 else "b"
            self.ids.append(self.decisions.add(record(question)))
            given = Feedback(self.ids[-1], "q", truth)
            calibrated = self.learner.label(given, turn=turn).calibrated
        return calibrated

    @property
    def state(self) -> CalibrationState:
        return self.labels.states("default", [QUESTION.digest])[QUESTION.digest]

    @property
    def temperature(self) -> float:
        assert self.state.calibrator is not None
        return float(json.loads(self.state.calibrator)["pooled"]["calibrator"]["t"])


@pytest.fixture
def lessons(database: Database) -> Iterator[Lessons]:
    made = Lessons(database)
    yield made
    made.learner.close()


def test_a_first_fit_is_tried_at_thirty_labels_and_then_at_every_tenth(lessons: Lessons) -> None:
    lessons.give(29, right=0.9)
    assert lessons.state.tried == 0
    assert not lessons.give(1, right=0.9)  # about true already
    assert lessons.state.tried == 30
    lessons.give(9, right=0.0)
    assert lessons.state.tried == 30
    assert lessons.give(1, right=0.0)
    assert lessons.state.tried == 40


def test_many_labels_at_once_teach_what_single_ones_do(lessons: Lessons) -> None:
    """The fit that they schedule runs by itself, at once."""
    exact = ("q", QUESTION.digest, QUESTION.definition_json)
    question = AskedQuestion(*exact, {"p": [0.95, 0.05]}, "a", 0.95)
    ids = [lessons.decisions.add(record(question)) for _ in range(41)]
    truths = ["a" if (number * 7) % 10 < 6 else "b" for number in range(41)]
    lines = [
        LabelledLine({"q": truth}, id=one, number=number)
        for number, (one, truth) in enumerate(zip(ids, truths, strict=True), 1)
    ]
    taken = lessons.learner.label_all(BulkFeedback(lines, [], len(lines)), "default")
    assert (taken.labels, taken.errors) == (41, [])
    assert (lessons.state.labels, lessons.state.revision) == (41, 41)
    until_tried(lessons, 41)
    assert lessons.state.calibrator is not None


def test_with_a_calibrator_a_label_waits_for_the_next_refit(lessons: Lessons) -> None:
    assert lessons.give(30)
    before = lessons.temperature
    lessons.give(20, right=0.0)
    assert (lessons.state.tried, lessons.temperature) == (30, before)


def test_refits_keep_their_distance_and_the_last_labels_count(database: Database) -> None:
    """The refit that the labels scheduled runs by itself, once the distance has passed."""
    lessons = Lessons(database)
    try:
        lessons.give(30)
        before, fitted_at = lessons.temperature, lessons.state.fitted_at
        lessons.clock.now += 6
        lessons.give(1, right=0.0)  # due at once: it runs behind this thread's back
        until_tried(lessons, 31)
        assert lessons.state.fitted_at == fitted_at + 6_000  # type: ignore[operator]
        assert lessons.temperature > before
    finally:
        lessons.learner.close()


def test_labels_that_a_stopped_server_had_no_time_for_are_learned_by_the_next(
    database: Database,
) -> None:
    first = Lessons(database)
    first.give(30)
    first.give(5, right=0.0)
    first.learner.close()
    assert first.state.tried == 30
    second = Lessons(database, refit_s=0.01)
    second.clock.now += 60
    until_tried(second, 35)
    second.learner.close()


def test_a_refit_follows_what_the_labels_say_now(lessons: Lessons) -> None:
    lessons.give(30)
    before = lessons.temperature
    lessons.give(400, right=0.9)
    lessons.learner.fit(PLACE)
    assert lessons.state.tried == 430
    assert lessons.temperature < before / 2


def until_tried(lessons: Lessons, revision: int) -> None:
    give_up_at = time.monotonic() + 30
    while lessons.state.tried < revision:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_a_first_try_that_came_to_nothing_is_made_with_the_next_label(database: Database) -> None:
    """As when the process is killed, or the disk fails, between the label and the fit."""
    lessons = Lessons(database, labels=Unreadable(database))
    lessons.give(29)
    with pytest.raises(StorageError):
        lessons.give(1)
    lessons.learner.close()
    again = Lessons(database)
    assert again.give(1)
    assert again.state.tried == 31
    again.learner.close()


def test_a_label_given_again_is_no_new_try(lessons: Lessons) -> None:
    lessons.give(30, right=0.9)
    lessons.learner.label(Feedback(lessons.ids[-1], "q", "a"))
    state = lessons.state
    assert (state.labels, state.revision, state.tried) == (30, 31, 30)


def test_a_first_fit_is_tried_again_after_ten_labels_that_were_corrected(lessons: Lessons) -> None:
    lessons.give(30, right=0.9)
    assert lessons.state.calibrator is None
    first = lessons.ids[:10]
    for one in first[:9]:
        lessons.learner.label(Feedback(one, "q", "b"))
    assert lessons.state.tried == 30
    lessons.learner.label(Feedback(first[9], "q", "b"))
    assert (lessons.state.labels, lessons.state.tried) == (30, 40)
    assert lessons.state.calibrator is not None


def test_a_first_fit_is_tried_again_after_corrections_in_bulk(lessons: Lessons) -> None:
    lessons.give(30, right=0.9)
    lessons.clock.now += 6
    truths = ["a", "b", "a"] * 10
    given = zip(lessons.ids, truths, strict=True)
    lines = [LabelledLine({"q": truth}, id=one, number=1) for one, truth in given]
    lessons.learner.label_all(BulkFeedback(lines, [], len(lines)), "default")
    until_tried(lessons, 60)
    assert lessons.state.calibrator is not None


def test_beyond_many_probabilities_it_is_tried_behind_the_callers_back_too(
    database: Database,
) -> None:
    lessons = Lessons(database, numbers=30 * 2 - 1)
    assert not lessons.give(30)
    until_tried(lessons, 30)
    assert lessons.state.calibrator is not None
    lessons.learner.close()


class Turns:
    """Lets some in, and whoever comes then waits beyond the deadline."""

    def __init__(self, some: int) -> None:
        self.left = some

    def __call__(self) -> AbstractContextManager[None]:
        self.left -= 1
        if self.left < 0:
            raise Timeout("the request exceeded its deadline")
        return nullcontext()


def test_a_first_fit_whose_turn_does_not_come_is_made_in_the_background(lessons: Lessons) -> None:
    lessons.give(29, right=0.0)
    lessons.give(1, right=0.0, turn=Turns(1))
    assert lessons.state.labels == 30 and lessons.state.calibrator is None
    until_tried(lessons, 30)
    assert lessons.state.calibrator is not None


def test_a_label_whose_decision_is_not_read_in_time_is_not_stored(lessons: Lessons) -> None:
    lessons.give(1)
    with pytest.raises(Timeout):
        lessons.give(1, turn=Turns(0))
    assert lessons.state.labels == 1


def test_beyond_many_labels_a_first_calibrator_is_tried_behind_the_callers_back(
    database: Database,
) -> None:
    lessons = Lessons(database, at_once=30)
    lessons.give(30, right=0.9)
    assert lessons.state.tried == 30 and lessons.state.calibrator is None
    lessons.clock.now += 6
    assert not lessons.give(10, right=0.0)
    until_tried(lessons, 40)
    assert lessons.state.calibrator is not None
    lessons.learner.close()


def test_labels_in_bulk_are_stored_in_parts_unless_all_or_none_are_wanted(
    database: Database,
) -> None:
    labels = CountedWrites(database)
    lessons = Lessons(database, labels=labels)
    lessons.give(1)
    lines = [LabelledLine({"q": "a"}, id=lessons.ids[-1], number=1)]
    for atomic in (False, True):
        lessons.learner.label_all(BulkFeedback(lines, [], 1, atomic=atomic), "default")
    lessons.learner.close()
    assert labels.at_once == [limits.BULK_STORED_AT_ONCE, None]
