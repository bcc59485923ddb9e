"""The report on rates; what its intervals are worth is told by tests/stats/test_rates.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from svc.errors import InvalidRequest, NotFound
from svc.jsontext import JsonObject
from svc.learning import Learner, RateReporter
from svc.questions import TYPES, Question
from svc.records import AskedQuestion
from svc.schemas.feedback import Feedback
from svc.store import Labels, Periods, QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.terms import Sampling
from tests.store.records import record

NOW = 1_795_000_000.0
WEEK_S = 7 * 86_400
CHOICE = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"b": "", "a": ""}, "escape": False}
)
NOUL = TYPES["noul"].load({"type": "noul", "instructions": "?"})
SCORE = TYPES["score"].load({"type": "score", "instructions": "?", "levels": ["x", "y", "z"]})


class Archive:
    """Decisions on the question `q`, their labels, and the report."""

    def __init__(self, database: Database, **limits: int) -> None:
        self.now = NOW
        clock = lambda: self.now  # noqa: E731
        labels, versions = Labels(database), QuestionVersions(database)
        self._decisions = Decisions(database, clock)
        self.learner = Learner(self._decisions, versions, labels, clock)
        self._reporter = RateReporter(versions, labels, Periods(database, **limits), clock)

    def add(self, *p: float, of: Question = CHOICE, label: Any = None, **sampled: Any) -> None:
        question = AskedQuestion("q", of.digest, of.definition_json, {"p": list(p)})
        decision_id = self._decisions.add(record(question))
        if label is not None:
            self.learner.label(Feedback(decision_id, "q", label, **sampled))

    def report(self, weeks: int = 8, key: str = "q") -> JsonObject:
        return self._reporter.report("default", key, weeks)

    def by_option(self) -> dict[str, JsonObject]:
        return {one["option"]: one for one in self.report()["rates"]}


@pytest.fixture
def archive(database: Database) -> Iterator[Archive]:
    made = Archive(database)
    yield made
    made.learner.close()


def test_without_labels_only_what_models_answered_is_known(archive: Archive) -> None:
    for p in (0.9, 0.8, 0.3, 0.6):
        archive.add(p, 1 - p)
    report = archive.report()
    assert (report["decisions"], report["labels"], report["cut"]) == (4, 0, False)
    first, second = report["rates"]
    assert (first["option"], first["naive"]) == ("a", 0.75)
    assert (second["option"], second["naive"]) == ("b", 0.25)
    assert {first[name] for name in ("estimate", "low", "high", "labels_alone", "worth")} == {None}


def test_labels_correct_what_models_always_get_wrong(archive: Archive) -> None:
    for number in range(400):
        answer = 0.9 if number % 2 else 0.2
        # The truth is `a` in 30%, the answer in half.
        truth = "a" if number % 10 in (1, 3, 5) else "b"
        archive.add(answer, 1 - answer, label=truth if number < 100 else None)
    found = archive.by_option()["a"]
    assert found["naive"] == 0.5
    assert found["low"] < 0.3 < found["high"] < 0.5
    alone = found["labels_alone"]
    assert found["high"] - found["low"] < alone["high"] - alone["low"]
    assert found["worth"] > 1


def test_a_yes_no_question_has_false_and_true_and_even_counts_as_true(archive: Archive) -> None:
    for p in (0.5, 0.9, 0.1):
        archive.add(p, of=NOUL)
    assert [(one["option"], one["naive"]) for one in archive.report()["rates"]] == [
        ("false", pytest.approx(1 / 3)),
        ("true", pytest.approx(2 / 3)),
    ]
    for number in range(40):
        archive.add(0.8, of=NOUL, label=number % 4 > 0)
    assert archive.by_option()["true"]["estimate"] == pytest.approx(0.75, abs=0.05)


def test_levels_stand_in_their_order(archive: Archive) -> None:
    archive.add(0.1, 0.2, 0.7, of=SCORE, label=2)
    assert list(archive.by_option()) == ["0", "1", "2"]


def test_labels_of_decisions_before_the_period_do_not_count(archive: Archive) -> None:
    archive.add(0.9, 0.1, label="a")
    archive.now += WEEK_S
    archive.add(0.9, 0.1, label="b")
    assert [archive.report(weeks)["labels"] for weeks in (1, 2)] == [1, 2]


def test_labels_are_those_of_the_decisions_that_were_read(database: Database) -> None:
    archive = Archive(database, most=3)
    for _ in range(5):
        archive.now += 1
        archive.add(0.9, 0.1, label="a")
    report = archive.report()
    archive.learner.close()
    assert (report["decisions"], report["labels"], report["cut"]) == (3, 3, True)
    assert report["since"] == int(NOW + 3) * 1000


def test_labels_that_were_likelier_to_be_drawn_weigh_less(archive: Archive) -> None:
    for number in range(60):
        rare = number % 2 == 0
        chance = 0.1 if rare else 1.0
        archive.add(
            0.5, 0.5, label="a" if rare else "b", sampled=Sampling.QUEUE.value, chance=chance
        )
    report = archive.report()
    # Each that was drawn with a chance of a tenth stands for ten.
    assert report["rates"][0]["labels_alone"]["estimate"] == pytest.approx(10 / 11)
    assert report["sampling"]["labels"]["queue"] == 60


def test_questions_without_options_are_refused_by_name(archive: Archive) -> None:
    for kind, more in (("text", {}), ("multi", {"options": {"a": "", "b": ""}})):
        of = TYPES[kind].load({"type": kind, "instructions": "?", **more})
        archive.add(0.5, of=of)
        with pytest.raises(InvalidRequest, match=f'"q" is of type {kind}; rates are told of'):
            archive.report()


def test_a_question_that_was_never_asked_is_not_found(archive: Archive) -> None:
    with pytest.raises(NotFound, match='was never asked a question "q"'):
        archive.report()
