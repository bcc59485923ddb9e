"""Scores that are kept in steps are those that all labels, read again, would have."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svc import limits
from svc.learning import scored
from svc.learning.knowledge import Library
from svc.learning.labelled import labelled, worths
from svc.learning.scored import (
    QUESTION_LABELS,
    WHOLE,
    Asked,
    ScoredLabels,
    ScoredQuestions,
    Share,
    share_of_each,
)
from svc.questions import TYPES, Question
from svc.stats import TASKS, Floats, conformal
from svc.store import wordings
from svc.store.database import Database
from svc.store.decisions import Decisions, StoredDecision
from svc.store.erasing import erase
from svc.store.label_records import CalibrationState, NewLabel
from svc.store.labels import Labels
from tests.store.records import asked, record

QUESTION = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"a": "", "b": "", "c": ""}, "escape": False}
)
GROUPS = ("@p/m logprobs", "@p/n verbal")
MOST = 60
FEW = Share(MOST, limits.SETS_LABELS_READ)


class World:
    """Labels as callers give them, and two ways to score them."""

    def __init__(self, database: Database) -> None:
        self.database, self.labels = database, Labels(database)
        self.given: list[NewLabel] = []
        self.random, self.hours = random.Random(7), count()
        self._decision = replace(asked("q"), digest=QUESTION.digest)

    @property
    def place(self) -> tuple[str, bytes]:
        return ("default", QUESTION.digest)

    @property
    def state(self) -> CalibrationState:
        return self.labels.states("default", [QUESTION.digest])[QUESTION.digest]

    def give(self, known: bool = True, wrong: float = 0.2, **fields: Any) -> None:
        """A label of a new decision; with `known`, what it was worth is stored with it."""
        self.label(self.decide(), known, wrong, **fields)

    def decide(self) -> StoredDecision:
        """A new decision, an hour after the one before."""
        stored = Decisions(self.database, lambda: 3600.0 * next(self.hours))
        found = stored.get(stored.add(record(self._decision)))
        assert found is not None
        return found

    def label(
        self, found: StoredDecision, known: bool = True, wrong: float = 0.2, **fields: Any
    ) -> None:
        """A label of a decision."""
        low = self.random.choice([0.05, 0.1, self.random.random() / 3])
        p, truth = [1 - 2 * low, low, low], int(self.random.random() < wrong)
        label = NewLabel(
            decision_seq=found.seq,
            key="q",
            project="default",
            digest=QUESTION.digest,
            question_id=found.readings["q"].question_id,
            label="ab"[truth],
            truth=truth,
            p=p,
            answered_by=self.random.choice(GROUPS),
            created_at=1,
            chance=self.random.choice([None, 0.5, 0.1]),
            worth=worths(QUESTION.task, [p], [truth])[0] if known else None,
            **fields,
        )
        self.labels.add(label)
        self.given.append(label)

    def correct(self, place: int) -> None:
        """Give a label again, with another truth."""
        before = self.given[place]
        truth = (before.truth + 1) % 3
        known = None if before.worth is None else worths(QUESTION.task, [before.p], [truth])[0]
        self.labels.add(replace(before, truth=truth, worth=known))

    def erase(self, whole: bool) -> None:
        """Delete all decisions with their labels, or else all but one."""
        self.given.clear()
        rows = self.database.rows("SELECT seq, question_ids FROM decisions ORDER BY seq")
        (question_id,) = json.loads(rows[0]["question_ids"])
        seqs = [row["seq"] for row in rows[not whole :]]

        def erase_all(connection: sqlite3.Connection) -> None:
            assert erase(connection, seqs)
            wordings.note_deleted(connection, {question_id: len(seqs)})

        self.database.write(erase_all)
        assert wordings.drop_with_sums(self.database) == whole

    def agree(self, kept: ScoredLabels) -> None:
        """The kept scores are those of all labels read again, in whatever order."""
        data = self.labels.training_data(self.place, limits.LABELS_READ)
        assert data is not None
        rows = labelled(data, QUESTION, data.state.pools)
        true = TASKS[QUESTION.task].true_probabilities(rows.p, rows.truth)
        found = kept.scores(self.labels, data.state)
        names = [found.names[int(group)] for group in found.groups]
        kept_ones = zip(found.scores, found.truth, names, _each(found.weights, names), strict=True)
        scores, weights = conformal.log_scores(true), _each(rows.weights, rows.groups)
        groups = map(hash, rows.groups)
        all_ones = zip(scores, rows.truth, groups, weights, strict=True)
        assert sorted(kept_ones) == sorted(all_ones)


def _each(weights: Floats | None, labels: Sequence[object]) -> list[float]:
    return [1.0] * len(labels) if weights is None else weights.tolist()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database.open(tmp_path / "svc.db")
    yield World(database)
    database.close()


@pytest.fixture
def few_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LABELS_READ", MOST)


def test_label_by_label_also_where_labels_are_replaced(world: World, few_are_read: None) -> None:
    kept = ScoredLabels(world.place, QUESTION.task, FEW)
    for number in range(2 * MOST):
        world.give()
        if number % 7 == 3:
            world.correct(world.random.randrange(len(world.given)))
        if number % 11 == 5:
            again = world.random.randrange(len(world.given))
            world.correct(again)
            world.correct(again)
        if number % 3:
            world.agree(kept)


def test_names_of_models_whose_labels_are_read_no_more_are_forgotten(
    world: World, few_are_read: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ScoredLabels(world.place, QUESTION.task, FEW)
    names = 0
    for number in range(5 * MOST):
        monkeypatch.setattr(sys.modules[__name__], "GROUPS", [f"m{number} verbal"])
        world.give()
        if number % 5 == 0:
            world.agree(kept)
            state = world.labels.states("default", [QUESTION.digest])[QUESTION.digest]
            names = max(names, len(kept.scores(world.labels, state).names))
    assert names <= 2 * MOST + 5


def test_the_newest_label_and_all_of_them_are_replaced(world: World) -> None:
    kept = ScoredLabels(world.place, QUESTION.task)
    for _ in range(40):
        world.give()
    world.agree(kept)
    world.correct(-1)
    world.agree(kept)
    for place in range(40):
        world.correct(place)
    world.agree(kept)


@pytest.mark.parametrize("whole", [False, True])
def test_labels_that_come_after_all_were_erased(world: World, whole: bool) -> None:
    """As a whole the question goes too, with what counts its labels, and comes anew."""
    kept = ScoredLabels(world.place, QUESTION.task)
    for _ in range(60):
        world.give()
    world.agree(kept)
    world.erase(whole)
    for _ in range(40):
        world.give(wrong=1.0)
    assert (world.state.revision < 60) == whole
    world.agree(kept)


def test_labels_from_before_their_worth_was_stored(world: World) -> None:
    for _ in range(35):
        world.give(known=False)
    kept = ScoredLabels(world.place, QUESTION.task)
    world.agree(kept)
    world.give()
    world.agree(kept)


def test_what_members_said_is_merged_by_the_pools_of_the_day(world: World) -> None:
    members = {"@p/m": [0.6, 0.3, 0.1], "@p/n": [0.2, 0.7, 0.1]}
    kept = ScoredLabels(world.place, QUESTION.task)
    for number in range(32):
        world.give(members=members if number % 2 else None)
    world.agree(kept)
    pool = {"models": ["@p/m", "@p/n"], "kind": "linear", "weights": [0.9, 0.1], "labels": 32}
    with_pool = json.dumps([{**pool, "log_loss": {"equal": 1, "pool": 1}}])
    assert world.labels.keep(world.place, 32, 5, None, with_pool)
    world.agree(kept)
    world.give(members=members)
    world.agree(kept)


def test_a_change_of_the_answers_is_noticed_with_the_same_label(world: World) -> None:
    kept = ScoredLabels(world.place, QUESTION.task)
    for number in range(400):
        world.give(wrong=0.05 if number < 300 else 0.9)
        if number % 20 == 0 or number > 380:
            world.agree(kept)
    found = kept.scores(world.labels, world.state)
    assert found.weights is not None and len(np.unique(found.weights)) > 3


def test_labels_that_come_in_another_order_than_the_answers(world: World) -> None:
    kept = ScoredLabels(world.place, QUESTION.task)
    decisions = [world.decide() for _ in range(400)]
    order = world.random.sample(range(400), 400)
    for done, number in enumerate(order):
        world.label(decisions[number], wrong=0.05 if number < 300 else 0.9)
        if done % 9 == 3:
            world.correct(world.random.randrange(len(world.given)))
        if done % 20 == 0 or done > 390:
            world.agree(kept)
    found = kept.scores(world.labels, world.state)
    assert found.weights is not None and len(np.unique(found.weights)) > 3


def test_what_the_review_queue_handed_out_counts_by_the_chance_of_today(world: World) -> None:
    for _ in range(60):
        world.give()
    question_id = world.given[0].question_id

    def hand_out(connection: sqlite3.Connection) -> None:
        rounds = [("default", question_id)] * 3
        add = "INSERT INTO review_rounds (project, question_id) VALUES (?, ?)"
        connection.executemany(add, rounds)
        chances = [(number, level, 0.1 * number) for number in (1, 2, 3) for level in (0, 1)]
        connection.executemany("INSERT INTO review_chances VALUES (?, ?, 0.1, ?)", chances)
        connection.execute("UPDATE labels SET review_round = 1 + id % 3, doubt = id / 3 % 2")

    world.database.write(hand_out)
    kept = ScoredLabels(world.place, QUESTION.task)
    world.agree(kept)
    others = "UPDATE review_chances SET relative = relative * (2 + level)"
    world.database.write(lambda connection: connection.execute(others).rowcount)
    world.give()
    world.agree(kept)
    found = kept.scores(world.labels, world.state)
    assert found.weights is not None and len(np.unique(found.weights)) > 3
    # Sixty-one labels, two names, and six rounds and levels.
    assert kept.weight == 61 + 2 + 6


def test_only_the_rows_of_new_labels_are_read(world: World) -> None:
    for _ in range(40):
        world.give()
    first = world.labels.newer(world.place, limits.LABELS_READ)
    assert first is not None and not any(one.open_bytes for one in first.labels)
    world.give()
    last = first.labels[-1].id
    step = world.labels.newer(world.place, limits.LABELS_READ, last, first.state)
    assert step is not None and len(step.labels) == 1 and step.left is None


def test_a_label_costs_the_same_whether_there_are_few_others_or_many(world: World) -> None:
    """In what is read: with 300 labels before it no more than with 40."""
    counts = []
    kept = ScoredLabels(world.place, QUESTION.task)
    for size in (40, 260):
        for _ in range(size):
            world.give()
        world.agree(kept)
        world.give()
        reading = Counting(world.database)
        kept.scores(reading, world.state)
        counts.append(reading.rows)
    assert counts == [1, 1]


class Counting(Labels):
    """Counts the labels that are read, and how many raw readings at a time."""

    rows = 0

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.raw: list[int] = []

    def readings(self, ids: Any) -> Any:
        self.raw.append(len(ids))
        return super().readings(ids)

    def newer(self, *given: Any) -> Any:
        found = super().newer(*given)
        self.rows += 0 if found is None else len(found.labels)
        return found


def test_what_was_read_is_in_memory_of_a_few_labels_at_a_time(world: World) -> None:
    members = {"@p/m": [0.6, 0.3, 0.1], "@p/n": [0.2, 0.7, 0.1]}
    for number in range(120):
        world.give(members=members if number % 4 else None)
    reading = Counting(world.database)
    found = ScoredLabels(world.place, QUESTION.task).scores(reading, world.state)
    assert len(found.scores) == 120
    assert sum(reading.raw) == 90 and max(reading.raw) <= 50


def test_a_label_that_is_gone_when_it_is_read_counts_no_more(world: World) -> None:
    members = {"@p/m": [0.6, 0.3, 0.1], "@p/n": [0.2, 0.7, 0.1]}
    for _ in range(60):
        world.give(members=members)
    losing = Losing(world.database)
    kept = ScoredLabels(world.place, QUESTION.task)
    assert len(kept.scores(losing, world.state).scores) == 59
    world.give()
    assert kept.unread(world.state) == 1
    assert len(kept.scores(world.labels, world.state).scores) == 60


def test_how_many_labels_are_unread_is_told(world: World) -> None:
    for _ in range(40):
        world.give()
    kept = ScoredLabels(world.place, QUESTION.task)
    assert kept.unread(world.state) == 40
    world.agree(kept)
    assert kept.unread(world.state) == 0
    world.give()
    assert kept.unread(world.state) == 1


class Losing(Labels):
    """Has one label less by the time that its reading is wanted."""

    def readings(self, ids: Any) -> Any:
        found = super().readings(ids)
        found.pop(min(found) if min(ids) == 1 else -1, None)
        return found


@pytest.mark.parametrize(("kept", "forgotten"), [(62, 0), (61, 60)])
def test_labels_of_questions_stay_in_memory_as_far_as_they_are_few_together(
    world: World, monkeypatch: pytest.MonkeyPatch, kept: int, forgotten: int
) -> None:
    monkeypatch.setattr(scored, "LABELS_KEPT", 2 * QUESTION_LABELS + kept)
    for _ in range(60):
        world.give()
    questions, other = ScoredQuestions(world.labels), replace(QUESTION, instructions="Another?")
    assert len(questions.scores(Asked("default", None, WHOLE), QUESTION, world.state).scores) == 60
    questions.scores(Asked("default", None, WHOLE), other, world.state)
    assert questions.unread(Asked("default", None, WHOLE), QUESTION, world.state) == forgotten


def test_a_caller_of_many_projects_leaves_labels_of_others_in_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored, "LABELS_KEPT", 4 * (QUESTION_LABELS + 60))
    for _ in range(60):
        world.give()
    questions = ScoredQuestions(world.labels)
    questions.scores(Asked("default", "one", WHOLE), QUESTION, world.state)
    for number in range(20):
        questions.unread(Asked(f"other {number}", "two", WHOLE), QUESTION, world.state)
    assert questions.unread(Asked("default", "one", WHOLE), QUESTION, world.state) == 0


@pytest.mark.parametrize(
    ("labels", "share"),
    [
        ([5_000], Share(5_000, 50_000)),
        ([9_000] * 10, Share(5_000, 3_125)),
        ([5_000] * 64, Share(625, 781)),
        ([50] * 1_000, Share(5_000, 48)),
        ([500] * 1_000, Share(39, 48)),
        ([], WHOLE),
    ],
)
def test_questions_of_a_request_share_what_is_read_for_their_sets(
    labels: Sequence[int], share: Share
) -> None:
    assert share_of_each(labels) == share


def test_the_most_recent_labels_of_a_share_are_read(world: World) -> None:
    for _ in range(60):
        world.give()
    kept = ScoredLabels(world.place, QUESTION.task, Share(40, 1_000))
    assert kept.unread(world.state) == 40
    found = kept.scores(world.labels, world.state)
    whole = ScoredLabels(world.place, QUESTION.task).scores(world.labels, world.state)
    assert found.scores.tolist() == whole.scores[-40:].tolist()


def test_labels_of_councils_are_read_as_far_as_the_effort_of_their_share_goes(
    world: World,
) -> None:
    members = {"@p/m": [0.6, 0.3, 0.1], "@p/n": [0.2, 0.7, 0.1]}
    for number in range(60):
        world.give(members=members if number % 2 else None)
    reading = Counting(world.database)
    kept = ScoredLabels(world.place, QUESTION.task, Share(5_000, 101))
    found = kept.scores(reading, world.state)
    assert sum(reading.raw) == 20 and len(found.scores) == 40
    # Further ones are added to these, unless they alone take more.
    world.give(members=members)
    assert len(kept.scores(reading, world.state).scores) == 41
    for _ in range(25):
        world.give(members=members)
    assert len(kept.scores(reading, world.state).scores) == 20


def test_the_sets_of_a_request_read_so_many_labels_in_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SETS_LABELS_READ", 100)
    monkeypatch.setattr(limits, "LABELS_READ", 50)
    for _ in range(60):
        world.give()
    asked_for = [replace(QUESTION, instructions=f"{number}?", coverage=0.9) for number in range(3)]
    questions = [*asked_for, replace(QUESTION, instructions="Without a set?")]
    _give_all_the_same_labels(world, questions)
    reading = Counting(world.database)
    known = Library(reading).knowledge("default", questions)
    assert known.labels_to_read(questions) == 75
    for question in questions:
        known.scores(question, known.states[question.digest])
    assert reading.rows == 4 * 25


def _give_all_the_same_labels(world: World, questions: Sequence[Question]) -> None:
    """Labels of a question are those of all, as if each decision had asked them."""
    for question in questions:
        labels = [
            replace(one, digest=question.digest, key=f"{question.serial}") for one in world.given
        ]
        world.labels.add_all(labels)
