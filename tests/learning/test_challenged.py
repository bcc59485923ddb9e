"""What labels teach about a challenger, so that its calibrator is there on the day it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from svc.learning import Learner
from svc.learning.fits import Fits, parsed
from svc.questions import TYPES, Question
from svc.records import Answer, AskedQuestion, Challenger, ChallengerAnswer, Source
from svc.schemas import Feedback
from svc.store import Challengers, Labels, QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.records import record

ANIMAL = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"a": "", "b": ""}, "escape": False}
)
CITY = TYPES["text"].load({"type": "text", "instructions": "Which city?"})
RIVAL = "@demo/rival logprobs"
_FORGET_ALL = "DELETE FROM challenger_answers"


class School:
    """A challenger that answers decisions, whose labels a learner gets; fits are made by hand."""

    def __init__(self, database: Database, question: Question = ANIMAL) -> None:
        self.question, self.database = question, database
        self.decisions, self.labels = Decisions(database), Labels(database)
        self.challengers = Challengers(database)
        versions = QuestionVersions(database)
        # Later than all fits that labels ask for, so that tests say when one is made.
        self.learner = Learner(self.decisions, versions, self.labels, refit_s=1e6, at_once=0)
        self.decide()
        version = versions.latest("default", "q")
        assert version is not None
        self.place = ("default", version.digest)
        self.new = Challenger(0, "default", "q", version.digest, "@demo/rival", None, 1.0)
        self.row = self.challengers.add(self.new, version.question_id, 0)

    def decide(self, p: float = 0.7, by: str = "@demo/m logprobs", value: str = "") -> str:
        reading = {"p": [p] if value else [p, 1 - p], "by": by}
        exact = (self.question.digest, self.question.definition_json)
        fields = {"value": value, "confidence": p} if value else {"choice": "a"}
        answers = {"q": Answer(Source.MODELS, fields, top=value or "a", confidence=p)}
        return self.decisions.add(record(AskedQuestion("q", *exact, reading), answers=answers))

    def answer(self, decision_id: str, p: float = 0.97, value: str = "", by: str = RIVAL) -> None:
        """What the challenger answers, once it is stored."""
        fields = {"value": value, "confidence": p} if value else {"choice": "a"}
        said = (p,) if value else (p, 1 - p)
        found = ChallengerAnswer(self.row, decision_id, said, fields, answered_by=by)
        self.challengers.answered(found)
        self.database.check_writable(5.0)

    def label(self, decision_id: str, truth: str) -> None:
        self.learner.label(Feedback(decision_id, "q", truth))

    def teach(self, count: int = 100, by: str = RIVAL, p: float = 0.7) -> list[str]:
        """Labels that say a seven times of ten, of which the rival is far too sure."""
        made = [self.decide(p) for _ in range(count)]
        for number, one in enumerate(made):
            self.answer(one, by=by)
            self.label(one, "a" if number % 10 < 7 else "b")
        return made

    def fits(self) -> Fits:
        self.learner.fit(self.place)
        (state,) = self.labels.states(*self.place[:1], [self.place[1]]).values()
        return parsed(state.calibrator)


@pytest.fixture
def school(database: Database) -> Iterator[School]:
    made = School(database)
    yield made
    made.learner.close()


def test_labels_teach_the_calibrator_of_the_challengers_model(school: School) -> None:
    school.teach()
    fits = school.fits()
    own = fits.by_group[RIVAL]
    assert own.labels == 100 and own.calibrator is not None
    assert own.calibrator.one([0.97, 0.03])[0] == pytest.approx(0.7, abs=0.1)


def test_what_callers_get_is_as_without_a_challenger(school: School) -> None:
    # The model that answers is too sure as well, so that it has a calibrator.
    school.teach(p=0.9)
    fits = school.fits()
    school.database.write(lambda connection: connection.execute(_FORGET_ALL).rowcount)
    alone = school.fits()
    assert set(fits.by_group) == {RIVAL}
    assert alone.pooled.calibrator is not None
    assert (fits.pooled, fits.of("@demo/m logprobs")) == (
        alone.pooled,
        alone.of("@demo/m logprobs"),
    )


def test_a_model_that_answers_callers_too_is_calibrated_by_what_it_answers_them(
    school: School,
) -> None:
    """As one that a cascade asks about what is hard, and a challenger about everything."""
    for number in range(40):
        school.label(school.decide(0.95, by=RIVAL), "a" if number % 2 else "b")
    alone = school.fits()
    school.teach()
    beside = school.fits()
    assert alone.of(RIVAL) is not None
    hard, easy = ([0.95, 0.05], [0.97, 0.03])
    calibrator = beside.of(RIVAL)
    assert calibrator is not None
    assert calibrator.one(hard)[0] == pytest.approx(0.5, abs=0.12)
    assert calibrator.one(easy)[0] < 0.65


def test_its_labels_are_corrected_and_deleted_with_those_of_callers(school: School) -> None:
    made = school.teach(60)
    question_id = school.decisions.get(made[0]).readings["q"].question_id  # type: ignore[union-attr]

    def said() -> list[str]:
        found = school.labels.of_challengers("default", question_id, 100)
        return [one.label for one in found]

    assert (len(said()), said().count('"b"')) == (60, 18)
    school.label(made[0], "b")
    assert (len(said()), said().count('"b"')) == (60, 19)
    assert len(school.labels.of_challengers("default", question_id, 10)) == 10


def test_the_same_model_and_mode_learn_once_from_a_label(school: School) -> None:
    school.teach(by="@demo/m logprobs")
    assert school.fits().by_group.get("@demo/m logprobs") is None


def test_another_wording_learns_nothing_from_the_labels_of_this_one(database: Database) -> None:
    school = School(database)
    school.challengers.remove(replace(school.new, id=school.row))
    version = QuestionVersions(database).latest("default", "q")
    assert version is not None
    other = replace(school.new, wording="{}")
    school.row = school.challengers.add(other, version.question_id, 0)
    school.teach(40)
    assert school.labels.of_challengers("default", version.question_id, 100) == []
    school.learner.close()


def test_an_extracted_value_of_the_challenger_is_right_or_wrong_by_itself(
    database: Database,
) -> None:
    school = School(database, CITY)
    for _ in range(60):
        decision_id = school.decide(0.9, value="Rome")
        school.answer(decision_id, 0.9, value="Paris")
        school.label(decision_id, "Rome")
    rival = school.fits().by_group[RIVAL].calibrator
    assert rival is not None and rival.one([0.9])[0] < 0.3
    school.learner.close()


def test_a_retired_challenger_is_still_known(school: School) -> None:
    school.teach()
    running = replace(school.new, id=school.row)
    school.challengers.promote(running, 1)
    assert RIVAL in school.fits().by_group
    # A second one takes its place.
    version = QuestionVersions(school.database).latest("default", "q")
    assert version is not None
    next_row = school.challengers.add(replace(running, model="@demo/third"), version.question_id, 2)
    school.challengers.promote(replace(running, id=next_row), 3)
    assert RIVAL in school.fits().by_group
