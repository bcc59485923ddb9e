"""Decisions are lent to one reviewer at a time, and their chances are known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from svc import limits
from svc.store import (
    Database,
    Entry,
    Judgements,
    Labels,
    NewerLabels,
    NewLabel,
    QuestionVersions,
    ReviewItem,
    ReviewQueue,
    Stratum,
    Wording,
    Worth,
)
from svc.store.decisions import Decisions
from tests.store.lending import plans
from tests.store.records import asked, record
from tests.store.statements import traced

NOW, LEASE, HOUR = 1_000_000_000, 60_000, 3_600_000
SIZES = (0.5, 1.0)
TOPIC = asked("topic", reading={"p": [0.7, 0.3]})


class Office:
    """Decisions of one question, which reviewers take and label."""

    def __init__(self, database: Database, most: int = 100) -> None:
        self.decisions = Decisions(database, lambda: self.now / 1000)
        self.labels = Labels(database)
        self.queue, self.judgements = ReviewQueue(database, most), Judgements(database)
        self._versions = QuestionVersions(database)
        self.now = NOW

    @property
    def wording(self) -> Wording:
        version = self._versions.latest("default", "topic")
        assert version is not None
        return ("default", version.question_id)

    def decide(self, *priorities: float, level: int = 0) -> list[str]:
        """Decisions that enter the queue with these priorities, as their ids."""
        made = [self.decisions.add(record(TOPIC)) for _ in priorities]
        look = self.queue.look(self.wording, self.now, self.now)
        assert look is not None
        assert len(look.decisions) == len(made)
        entries = [
            Entry(one.seq, one.key, level, 0.7, priority)
            for one, priority in zip(look.decisions, priorities, strict=True)
        ]
        self.queue.enter(self.wording, look, entries, SIZES, 0)
        return made

    def looks(self) -> None:
        """The queue looks for decisions, and finds that it has them all."""
        look = self.queue.look(self.wording, self.now, self.now)
        assert look is not None
        self.queue.enter(self.wording, look, [], SIZES, self.now)

    def take(self, reviewer: str, limit: int = 1) -> list[str]:
        return [one.id for one in self.items(reviewer, limit)]

    def items(self, reviewer: str, limit: int = 1) -> list[ReviewItem]:
        return self.queue.hand_out(self.wording, reviewer, limit, self.now, self.now + LEASE)

    def label(self, decision_id: str, label: str = "a", **fields: Any) -> None:
        found = self.decisions.get(decision_id)
        assert found is not None
        version = self._versions.latest("default", "topic")
        assert version is not None
        given = NewLabel(
            decision_seq=found.seq,
            key="topic",
            project="default",
            digest=version.digest,
            question_id=version.question_id,
            label=label,
            truth=0,
            p=[0.7, 0.3],
            answered_by="@p/m logprobs",
            created_at=self.now,
            worth=Worth(0.7, 0.7, 1),
            **{"reviewer": "ann", **fields},
        )
        self.labels.add(given)

    def skip(self, decision_id: str, reviewer: str) -> bool:
        found = self.decisions.get(decision_id)
        assert found is not None
        return self.judgements.skip(self.wording, found.seq, "topic", reviewer, self.now)

    def newer(self, last_id: int = 0, *strata: Stratum) -> NewerLabels:
        """The labels after one, as prediction sets read them."""
        version = self._versions.latest("default", "topic")
        assert version is not None
        place = ("default", version.digest)
        found = self.labels.newer(place, 100, last_id, strata=strata)
        assert found is not None
        return found

    def chances(self) -> list[tuple[str | None, float | None]]:
        """How each label came about and its relative chance, in the order of labels."""
        version = self._versions.latest("default", "topic")
        assert version is not None
        data = self.labels.training_data(("default", version.digest), 100)
        assert data is not None
        return list(zip(data.sampled, data.relative, strict=True))


@pytest.fixture
def office(database: Database) -> Office:
    return Office(database)


def test_the_lowest_priority_comes_first_and_nobody_gets_what_another_has(office: Office) -> None:
    first, second, third = office.decide(0.3, 0.1, 0.2)
    assert office.take("ann") == [second]
    assert office.take("bob") == [third]
    assert office.take("eve", 5) == [first]
    assert office.take("joe") == []


def test_who_asks_again_has_the_same_decisions_and_more_up_to_the_limit(office: Office) -> None:
    first, second, third = office.decide(0.1, 0.2, 0.3)
    assert office.take("ann") == [first]
    office.now += LEASE // 2
    (again,) = office.items("ann")
    assert (again.id, again.leased_until) == (first, office.now + LEASE)
    assert office.take("ann", 3) == [first, second, third]


def test_what_is_not_labelled_in_time_goes_to_another_before_any_further_one(
    office: Office,
) -> None:
    first, second = office.decide(0.1, 0.2)
    assert office.take("ann") == [first]
    office.now += LEASE
    assert office.take("bob") == [first]
    assert office.take("ann") == [second]


def test_what_is_labelled_is_not_handed_out(office: Office) -> None:
    first, second, third = office.decide(0.1, 0.2, 0.3)
    office.label(second)
    assert office.take("ann") == [first]
    office.label(first)
    assert office.take("ann", 9) == [third]


def test_a_decision_given_back_goes_to_others_and_not_to_the_same_reviewer(office: Office) -> None:
    first, second = office.decide(0.1, 0.2)
    assert not office.skip(first, "ann")
    assert office.take("ann") == [first]
    assert not office.skip(first, "bob")
    assert office.skip(first, "ann")
    assert office.take("ann") == [second]
    assert office.take("bob") == [first]
    assert office.judgements.skipped(office.wording) == 1


def test_of_those_who_gave_a_decision_back_the_last_ones_are_kept(
    office: Office, database: Database
) -> None:
    (only,) = office.decide(0.1)
    many = limits.JUDGEMENTS_KEPT + 5
    for number in range(many):
        assert office.take(f"r{number}") == [only]
        assert office.skip(only, f"r{number}")
    said = [row["reviewer"] for row in database.rows("SELECT reviewer FROM judgements ORDER BY id")]
    assert said == [f"r{number}" for number in range(5, many)]
    assert office.judgements.skipped(office.wording) == 1
    assert (office.take(f"r{many - 1}"), office.take("r0")) == ([], [only])
    office.label(only, reviewer="r0")
    (count,) = database.rows("SELECT count(*) FROM judgements")[0]
    assert count == limits.JUDGEMENTS_KEPT + 1


def test_a_label_has_the_chance_of_its_draw_whatever_the_caller_says(office: Office) -> None:
    doubtful, *_ = office.decide(0.1, 0.6, level=1)
    sure, *_ = office.decide(0.2, 0.8, level=0)
    assert office.take("ann", 2) == [doubtful, sure]
    office.label(doubtful, sampled="other", chance=0.9)
    office.label(sure)
    # The frontier is 0.6: the doubtful ones had that chance, the sure ones half of it.
    mean = (0.6 + 0.3) / 2
    assert office.chances() == [
        ("queue", pytest.approx(0.6 / mean)),
        ("queue", pytest.approx(0.3 / mean)),
    ]


def test_chances_grow_as_more_is_handed_out_also_those_of_earlier_labels(office: Office) -> None:
    first, *_ = office.decide(0.1, 0.2, 0.9, level=1)
    office.decide(0.5, level=0)
    assert office.take("ann") == [first]
    office.label(first)
    assert office.chances() == [("queue", pytest.approx(0.2 / (0.2 * 3 + 0.1) * 4))]
    office.take("bob", 9)
    assert office.chances() == [("queue", pytest.approx(1))]


def test_decisions_that_come_later_have_the_chance_of_what_was_handed_out_since(
    office: Office,
) -> None:
    office.decide(0.1, 0.2, 0.7)
    for one in office.take("ann", 2):
        office.label(one)
    late, *_ = office.decide(0.05, 0.3)
    assert office.take("bob") == [late]
    office.label(late)
    assert [chance for _, chance in office.chances()] == pytest.approx([1, 1, 1])
    look = office.queue.drawn(office.wording, 10)
    assert look.decisions == {0: 5, 1: 0}
    # Of the first 0.7 were handed out, of these 0.3.
    assert look.chance == pytest.approx([0.15, 0.35, 0.35])


def test_what_was_labelled_before_its_turn_keeps_what_its_caller_said(office: Office) -> None:
    first, *_ = office.decide(0.1, 0.2)
    office.label(first, sampled="other")
    assert office.chances() == [("other", None)]


def test_labels_from_elsewhere_count_however_many_came_after_them(office: Office) -> None:
    first, *others = office.decide(0.1, 0.2, 0.3, 0.4)
    office.label(first, sampled="other")
    for one in office.take("ann", 3):
        office.label(one)
    assert len(others) == 3
    assert office.queue.drawn(office.wording, 2).elsewhere == 1


def test_a_correction_of_a_drawn_label_stays_drawn(office: Office) -> None:
    first, *_ = office.decide(0.1, 0.2)
    office.take("ann")
    office.label(first, reviewer="ann")
    office.label(first, "b", reviewer="bob")
    assert office.chances() == [("queue", pytest.approx(1))]
    ((ann, bob),) = office.judgements.of_several(office.wording, 10)
    assert (ann.reviewer, ann.label, bob.reviewer, bob.label) == ("ann", '"a"', "bob", '"b"')
    assert ann.counts == bob.counts == '"b"'


def test_reviewers_who_agree_in_the_end_do_not_disagree(office: Office) -> None:
    (one,) = office.decide(0.1)
    for reviewer, label in (("ann", "a"), ("bob", "b"), ("bob", "a")):
        office.label(one, label, reviewer=reviewer)
    found = office.judgements.of_several(office.wording, 10)
    assert {said.label for judgements in found for said in judgements} <= {'"a"'}


def test_what_was_given_back_is_counted_without_reading_what_was_labelled(
    office: Office, database: Database
) -> None:
    first, second = office.decide(0.1, 0.2)
    for reviewer in ("ann", "bob"):
        office.take(reviewer)
        assert office.skip(first, reviewer)
    office.take("ann")
    office.label(second)
    assert office.judgements.skipped(office.wording) == 1
    wording = office.wording
    (plan,) = plans(database, lambda lent: Judgements(lent).skipped(wording))
    # Nothing else is in that index, and it has the order in which equal ones follow each other.
    assert "INDEX judgements_given_back (project=? AND question_id=?)" in plan
    assert "TEMP B-TREE" not in plan


BOTH_SAID = 2 * len('topic"a"')


@pytest.mark.parametrize(
    ("bound", "found"),
    [
        ({"depth": 2}, 1),
        ({"depth": 1}, 0),
        ({"chars": BOTH_SAID}, 1),
        ({"chars": BOTH_SAID - 1}, 0),
    ],
)
def test_disagreements_are_looked_for_in_the_last_judgements_and_in_so_many_characters(
    office: Office, database: Database, bound: dict[str, int], found: int
) -> None:
    (made,) = office.decide(0.1)
    office.label(made, "a", reviewer="ann")
    office.label(made, "b", reviewer="bob")
    assert len(Judgements(database, **bound).of_several(office.wording, 9)) == found


def test_of_decisions_on_which_reviewers_may_disagree_so_much_is_read(
    office: Office, database: Database
) -> None:
    """The oldest judgements of each are long, and not among the last ones of the question."""
    made = office.decide(0.1, 0.2, 0.3)
    for reviewer, label in (("old", "x" * 100), ("ann", "a"), ("bob", "b")):
        for one in made:
            office.label(one, label, reviewer=reviewer)
    newest = 100 + 3 * len('topic"""b"') + len("ab")
    for chars, found in ((newest, made[:1:-1]), (newest + 1, made[:0:-1]), (10_000, made[::-1])):
        read: list[str] = []
        judgements = Judgements(database, depth=6, chars=chars)
        # None is listed, so that all that may be read is.
        judgements.of_several(office.wording, 9, lambda said, read=read: read.append(said[0].id))
        assert read == found


def test_the_oldest_are_left_out_where_too_many_wait(database: Database) -> None:
    office = Office(database, most=3)
    old = office.decide(0.1, 0.2, 0.3)
    office.take("ann")
    office.decide(0.4, 0.5, 0.6)
    new = office.decide(0.7, 0.8, 0.9)
    assert office.take("ann", 9) == [old[0], *office.take("ann", 9)[1:]]
    assert not set(old[1:]) & set(office.take("ann", 9))
    assert set(new) <= set(office.take("ann", 9))


def test_a_look_finds_so_many_decisions_and_reads_so_much_of_them(database: Database) -> None:
    office = Office(database)
    twice = (TOPIC, asked("again", reading={"p": [0.6, 0.4]}))
    made = [office.decisions.add(record(*twice)) for _ in range(4)]
    rows = [found.seq for one in made if (found := office.decisions.get(one))]
    length = len('{"topic":{"p":[0.7,0.3]},"again":{"p":[0.6,0.4]}}')
    for queue in (ReviewQueue(database, most=5), ReviewQueue(database, chars=3 * length - 1)):
        look = queue.look(office.wording, NOW, NOW)
        assert look is not None
        found = [(one.seq, one.key) for one in look.decisions]
        assert found == [(row, key) for row in rows[2:] for key in ("topic", "again")]
        assert look.last == rows[3]


def test_a_second_look_finds_what_is_new_alone(office: Office) -> None:
    office.decide(0.1)
    look = office.queue.look(office.wording, NOW, NOW)
    assert look is not None
    assert look.decisions == []
    assert office.queue.look(office.wording, 0, NOW) is None


def test_one_of_two_who_look_at_once_lets_the_decisions_in(office: Office) -> None:
    office.decisions.add(record(TOPIC))
    looks = [office.queue.look(office.wording, NOW, NOW) for _ in range(2)]
    for look in looks:
        assert look is not None
        entries = [Entry(one.seq, one.key, 0, 0.7, 0.1) for one in look.decisions]
        office.queue.enter(office.wording, look, entries, SIZES, 0)
    assert office.queue.drawn(office.wording, 1).decisions == {0: 1, 1: 0}


def test_a_clock_that_was_ahead_leaves_nothing_lent_or_unseen(office: Office) -> None:
    office.now += 3 * HOUR
    first = office.decide(0.1, 0.2)
    office.looks()
    assert office.take("ann", 2) == first
    office.now -= 3 * HOUR
    office.decisions.add(record(TOPIC))
    look = office.queue.look(office.wording, office.now - LEASE, office.now)
    assert look is not None and len(look.decisions) == 1
    counts = office.queue.counts(office.wording, office.now)
    assert (counts.leased, counts.returned) == (0, 2)
    assert sorted(office.take("bob", 2)) == sorted(first)
    assert office.queue.counts(office.wording, office.now).leased == 2


def test_a_clock_that_steps_back_a_little_takes_nothing_out_of_hands(office: Office) -> None:
    first, second = office.decide(0.1, 0.2)
    assert office.take("ann") == [first]
    office.now -= LEASE // 2
    assert office.take("bob", 2) == [second]


def test_many_reviewers_at_once_never_have_the_same_decision(office: Office) -> None:
    made = office.decide(*(number / 100 for number in range(96)))
    with ThreadPoolExecutor(16) as threads:
        taken = list(threads.map(lambda number: office.take(f"r{number}", 6), range(16)))
    assert sorted(one for page in taken for one in page) == made


def test_what_rules_answered_or_was_asked_in_other_words_is_not_handed_out(
    office: Office,
) -> None:
    office.decisions.add(record(asked("topic", reading=None)))
    office.decisions.add(record(asked("other", "Who?")))
    made = office.decisions.add(record(TOPIC))
    look = office.queue.look(office.wording, NOW, NOW)
    assert look is not None
    found = office.decisions.get(made)
    assert found is not None
    assert [one.seq for one in look.decisions] == [found.seq]


def test_labels_read_in_steps_have_the_chances_of_today_whenever_they_were_handed_out(
    office: Office,
) -> None:
    office.decide(0.1, 0.4)
    (old,) = office.take("ann")
    office.decide(0.2, 0.6)
    (new,) = office.take("bob")
    office.label(new)
    before = office.newer()
    assert [(one.review_round, one.doubt) for one in before.labels] == [(2, 0)]
    assert before.relative == {(2, 0): pytest.approx(1)}
    office.label(old)
    after = office.newer(before.labels[-1].id, (2, 0), (2, 1), (7, 0))
    assert [(one.review_round, one.doubt) for one in after.labels] == [(1, 0)]
    assert after.relative.keys() == {(1, 0), (2, 1), (2, 0)}
    assert (after.relative[2, 0], after.relative[2, 1]) == (pytest.approx(1), pytest.approx(2))
    assert office.newer(after.labels[-1].id).relative == {}


def test_no_more_are_handed_out_while_many_are_out_and_not_labelled(database: Database) -> None:
    office = Office(database)
    office.queue = ReviewQueue(database, 100, handed=3)
    decided = office.decide(0.1, 0.2, 0.3, 0.4)
    assert office.take("ann", 2) == decided[:2]
    assert office.take("bob", 2) == decided[2:3]
    assert office.take("cyd", 2) == []
    office.label(decided[0])
    assert office.take("cyd", 2) == decided[3:]
    # What came back is handed out however many are out.
    office.now += LEASE
    assert sorted(office.take("dan", 3)) == sorted(decided[1:])


def test_what_is_out_is_found_without_reading_the_rest_that_is_out(
    office: Office, database: Database
) -> None:
    office.decide(0.1, 0.2)
    office.take("ann")
    wording, now = office.wording, office.now

    def look_and_count(lent: Database) -> None:
        queue = ReviewQueue(lent)
        queue.hand_out(wording, "bob", 1, now, now + LEASE)
        queue.counts(wording, now)

    found = plans(database, look_and_count)
    assert not any("SCAN review_items" in one for one in found)
    # What a reviewer has, before and after more is taken; and three ways to come back, and the
    # count of those lent.
    mine = "review_items_by_reviewer (project=? AND question_id=? AND reviewer=? AND leased_until>?"
    assert sum(one.count(mine) for one in found) == 2
    lease = "review_items_by_lease (project=? AND question_id=? AND leased_until"
    assert sum(one.count(lease) for one in found) == 4
    # The rest counts, or takes the first in the order of turns.
    rest = [one for one in found if "review_items_by_turn" in one]
    assert not any("COVERING" not in one and "TEMP B-TREE" in one for one in rest)


def test_of_labelled_decisions_the_most_recent_say_how_doubtful_new_ones_are(
    database: Database,
) -> None:
    """All that were ever labelled may be millions."""
    office = Office(database, most=2)
    for _ in range(3):
        (one,) = office.decide(0.5)
        office.take("ann")
        office.label(one)
    office.decide(0.5)
    office.decisions.add(record(TOPIC))
    look = office.queue.look(office.wording, office.now, office.now)
    assert look is not None
    # Two that are labelled, and one that waits.
    assert len(look.confidences) == 3


def test_a_look_that_hands_nothing_out_notes_that_nothing_waits(office: Office) -> None:
    drawn, *waiting = office.decide(0.1, 0.2, 0.9, level=0)
    sure, *_ = office.decide(0.3, level=1)
    assert office.take("ann") == [drawn]
    office.label(drawn)
    for one in (*waiting, sure):
        office.label(one, sampled="other")
    before = dict(office.chances())["queue"]
    assert office.take("ann") == []
    after = dict(office.chances())["queue"]
    # All of the round had their turn, so that what was drawn stands for itself alone.
    assert before == pytest.approx(0.1 / (0.1 * 3 + 0.2) * 4)
    assert after == pytest.approx(1)


def test_the_queue_changes_with_few_statements(office: Office, database: Database) -> None:
    """After each the writer waits for the interpreter, and all who store decisions for it."""
    made = [office.decisions.add(record(TOPIC)) for _ in range(100)]
    look = office.queue.look(office.wording, office.now, office.now)
    assert look is not None and len(look.decisions) == len(made)
    entries = [
        Entry(one.seq, one.key, number % 2, 0.7, number / 100)
        for number, one in enumerate(look.decisions)
    ]
    statements = traced(database)
    office.queue.enter(office.wording, look, entries, SIZES, 0)
    assert sorted(office.take("ann", 100)) == sorted(made)
    assert 0 < len(statements) < 50
