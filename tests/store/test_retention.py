"""Decisions that are older than their project keeps them go, with all that hangs on them."""

from __future__ import annotations

import time

import pytest

from svc.records import Challenger, ChallengerAnswer
from svc.store import (
    Challengers,
    Database,
    Eras,
    Job,
    JobRow,
    Jobs,
    KeptAnswer,
    KeptAnswers,
    Labels,
    NewLabel,
    Overview,
    ProjectSizes,
    QuestionVersions,
    Retention,
    Retentions,
    Sweeping,
    UnknownDecision,
    Weeks,
    erasing,
    kept_answers,
    new_id,
)
from svc.store.contents import LONG
from svc.store.decisions import Decisions
from svc.store.project_sizes import JOB_BYTES, WORDING_ROW_BYTES, asked_bytes
from svc.store.wordings import drop_keys
from tests.clock import Clock
from tests.store.records import asked, record

DAY_S = 86_400.0
TABLES = ("decisions", "labels", "judgements", "review_items", "job_rows", "challenger_answers")


class Shop:
    """Decisions of a project that keeps them for three days."""

    def __init__(self, database: Database) -> None:
        self.database, self.clock = database, Clock(time.time())
        self.decisions, self.labels = Decisions(database, self.clock), Labels(database)
        self.sweeping = Sweeping(database, self.clock)
        Retentions(database).set("default", 3)

    def later(self, days: float) -> None:
        self.clock.now += days * DAY_S

    def sweep(self) -> None:
        while self.sweeping.decisions("default"):
            pass
        step = self.sweeping.job_rows("default")
        while step(erasing.TOGETHER):
            pass

    def ids(self, project: str = "default") -> list[str]:
        return [entry.id for entry in self.decisions.page(project, 1_000).entries]

    def count(self, table: str) -> int:
        (row,) = self.database.rows(f"SELECT count(*) FROM {table}")
        return int(row[0])

    def label(self, decision_id: str, reviewer: str | None = None) -> NewLabel:
        found = self.decisions.get(decision_id)
        version = QuestionVersions(self.database).latest("default", "topic")
        assert found is not None
        assert version is not None
        return NewLabel(
            decision_seq=found.seq,
            key="topic",
            project="default",
            digest=version.digest,
            question_id=version.question_id,
            label="a",
            truth=0,
            p=[0.7, 0.3],
            answered_by="@p/m logprobs",
            created_at=1,
            reviewer=reviewer,
        )


@pytest.fixture
def shop(database: Database) -> Shop:
    return Shop(database)


def test_only_decisions_of_the_project_that_are_too_old_go(shop: Shop) -> None:
    shop.decisions.add(record())
    other = shop.decisions.add(record(project="other"))
    shop.later(2)
    young = shop.decisions.add(record())
    shop.later(1.5)
    shop.sweep()
    assert (shop.ids(), shop.ids("other")) == ([young], [other])


def test_without_a_retention_nothing_goes(shop: Shop) -> None:
    retentions = Retentions(shop.database)
    retentions.set("default", 4)
    assert retentions.all() == [Retention("default", 4)]
    assert (retentions.remove("default"), retentions.remove("default")) == (True, False)
    kept = shop.decisions.add(record())
    shop.later(100)
    shop.sweep()
    assert shop.ids() == [kept]


def test_a_step_is_small(shop: Shop) -> None:
    for _ in range(erasing.TOGETHER + 5):
        shop.decisions.add(record())
    shop.later(4)
    assert shop.sweeping.decisions("default")
    assert shop.count("decisions") == 5
    assert shop.sweeping.decisions("default")
    assert not shop.sweeping.decisions("default")


def test_what_hangs_on_a_decision_goes_with_it_and_sums_and_calibrators_stay(shop: Shop) -> None:
    old = shop.decisions.add(record())
    label = shop.label(old, reviewer="ada")
    shop.labels.add(label)
    place = ("default", label.digest)
    assert shop.labels.keep(place, 1, 1, '{"kind": "temperature", "t": 2.0}')
    challengers = Challengers(shop.database)
    new = Challenger(0, "default", "topic", b"", "@demo/rival", None, 0.1)
    row = challengers.add(new, label.question_id, 1, None)
    challengers.answered(ChallengerAnswer(row, old, (0.5, 0.5), {"choice": "b"}, 0.0, 20.0))
    # Nobody waits for an answer of a challenger; what is written after it comes after it.
    shop.database.check_writable(5.0)
    assert shop.count("challenger_answers") == 1
    shop.later(4)
    young = shop.decisions.add(record())
    shop.labels.add(shop.label(young))
    shop.sweep()
    assert [shop.count(table) for table in TABLES] == [1, 1, 0, 0, 0, 0]
    state = shop.labels.states(*(place[0], [place[1]]))[place[1]]
    assert (state.labels, state.calibrator) == (1, '{"kind": "temperature", "t": 2.0}')
    (project,) = Overview(shop.database).projects(None, "", 1)
    assert (project.decisions, project.labels) == (2, 1)
    shop.later(4)
    shop.sweep()
    (project,) = Overview(shop.database).projects(None, "", 1)
    # Of the last decision, which is gone, the day is known.
    last = (shop.clock.now - 4 * DAY_S) // DAY_S * DAY_S
    assert (project.labels, project.last_at) == (0, last * 1_000)
    now_ms = int(shop.clock.now * 1_000)
    weeks = Weeks(shop.database).read("default", label.question_id, 53, now_ms)
    assert sum(sum(week.counts.values()) for week in weeks) == 2


def test_processes_that_know_the_labels_of_before_learn_which_are_left(shop: Shop) -> None:
    ids = [shop.decisions.add(record()) for _ in range(2)]
    for one in ids:
        shop.labels.add(shop.label(one))
    shop.later(2)
    shop.labels.add(shop.label(shop.decisions.add(record())))
    place = ("default", shop.label(ids[0]).digest)
    before = shop.labels.newer(place, 10)
    assert before is not None
    shop.later(2)
    shop.sweep()
    newer = shop.labels.newer(place, 10, before.labels[-1].id, before.state)
    assert newer is not None
    assert newer.state.revision > before.state.revision
    assert newer.left == [before.labels[-1].id]


def test_a_sweep_is_no_reason_for_a_fit(shop: Shop) -> None:
    label = shop.label(shop.decisions.add(record()))
    shop.labels.add(label)
    place = ("default", label.digest)
    shop.labels.keep(place, 1, 1, "{}")
    shop.later(4)
    shop.sweep()
    assert shop.labels.stale(10) == []
    assert not shop.labels.claim(place, 10**15, 1)


def test_rows_and_ids_only_grow_though_the_last_decision_is_deleted(shop: Shop) -> None:
    old = shop.decisions.add(record())
    found = shop.decisions.get(old)
    assert found is not None
    shop.later(4)
    shop.sweep()
    shop.later(-4)
    new = shop.decisions.add(record())
    stored = shop.decisions.get(new)
    assert stored is not None
    assert stored.seq > found.seq
    assert new > old


def test_a_label_for_a_decision_that_was_deleted_meanwhile_is_not_kept(shop: Shop) -> None:
    label = shop.label(shop.decisions.add(record()), reviewer="ada")
    shop.later(4)
    shop.sweep()
    with pytest.raises(UnknownDecision):
        shop.labels.add(label)
    assert shop.count("judgements") == 0


def test_long_contents_stay_as_long_as_a_decision_refers_to_them(shop: Shop) -> None:
    sizes = ProjectSizes(shop.database)
    sizes.set("default", 10**9)
    long = record(asked("topic", reading={"p": [0.7, 0.3], "by": "x" * LONG}))
    whole = shop.decisions.get(shop.decisions.add(long))
    assert whole is not None
    kept = [shop.decisions.add(long) for _ in range(5)]
    assert shop.count("decisions WHERE same_as IS NOT NULL") == 5
    steps = [
        shop.database.write(lambda connection: erasing.erase(connection, [whole.seq], 2))
        for _ in range(2)
    ]
    assert steps == [False, True]
    assert shop.ids() == kept[::-1]
    for one in kept:
        found = shop.decisions.get(one)
        assert found is not None
        assert found.readings["topic"].reading["by"] == "x" * LONG
    (counted,) = sizes.all()
    sizes.set("default", 10**9)
    assert sizes.all() == [counted]
    shop.later(4)
    shop.sweep()
    # The newest wording of a question with sums stays.
    wording = WORDING_ROW_BYTES + len(long.questions[0].definition)
    assert sizes.all()[0].bytes == wording + asked_bytes("default", "topic")


def test_keys_that_no_decision_has_go_and_a_wording_with_sums_keeps_the_last_of_its_own(
    shop: Shop,
) -> None:
    sizes = ProjectSizes(shop.database)
    sizes.set("default", 10**9)
    by_rules = [asked(f"rule {number}", "By rules?", reading=None) for number in range(250)]
    shop.decisions.add(record(*by_rules))
    for key in ("old", "new"):
        shop.clock.now += 1
        shop.decisions.add(record(asked(key)))
    shop.decisions.add(record(asked("elsewhere", "By rules?", reading=None), project="other"))
    shop.later(4)
    shop.sweep()
    shop.decisions.add(record(by_rules[7]))
    shop.decisions.add(record(asked("elsewhere", "By rules?", reading=None), project="other"))
    shop.sweeping.wordings()
    rows = shop.database.rows("SELECT key FROM asked ORDER BY key")
    assert [key for (key,) in rows] == ["elsewhere", "new", "rule 7"]
    (counted,) = sizes.all()
    sizes.set("default", 10**9)
    assert sizes.all() == [counted]
    shop.later(4)
    shop.sweep()
    shop.later(1)
    shop.sweeping.wordings()
    rows = shop.database.rows("SELECT key FROM asked ORDER BY key")
    assert [key for (key,) in rows] == ["elsewhere", "new"]


def test_rows_of_an_open_job_stay_settled_and_those_of_an_ended_one_go(shop: Shop) -> None:
    jobs = Jobs(shop.database, shop.clock)
    seqs = []
    for rows in (1, 2):
        job = Job(
            id=new_id(), project="default", api_key=None, created_at=1, expires_at=2, rows=rows
        )
        jobs.add(job)
        seqs.append(jobs.get(job.id))
        shop.decisions.add(record(), JobRow(seqs[-1].seq, 1, "customer 1"))
    ended, still_open = seqs
    shop.later(4)
    shop.sweep()
    assert jobs.results(ended.id, 0, 10**6, lambda *_: "")[0] == []
    ((row,), after) = jobs.results(still_open.id, 0, 10**6, lambda *_: "")
    assert (row.number, row.id, row.decision, after) == (1, "", None, 1)
    assert "not_found" in (row.error or "")
    assert jobs.is_settled(JobRow(still_open.seq, 1, ""))
    assert not jobs.is_settled(JobRow(still_open.seq, 2, ""))


def test_what_is_deleted_counts_no_more_in_what_a_project_fills(shop: Shop) -> None:
    jobs, sizes = Jobs(shop.database, shop.clock), ProjectSizes(shop.database)
    kept = KeptAnswers(shop.database, shop.clock)
    sizes.set("default", 10**9)

    def check() -> None:
        """As many as are counted anew."""
        (counted,) = sizes.all()
        sizes.set("default", 10**9)
        assert sizes.all() == [counted]

    seqs = []
    for rows in (3, 5):
        job = Job(
            id=new_id(), project="default", api_key=None, created_at=1, expires_at=2, rows=rows
        )
        jobs.add(job)
        seqs.append(jobs.get(job.id).seq)
        for number in (1, 2):
            row = JobRow(seqs[-1], number, f"customer {number}")
            shop.decisions.add(record(tags={"by": "ann"}, ref="r"), row)
        jobs.fail(JobRow(seqs[-1], 3, "customer 3"), '{"type": "no"}')
    kept.keep(KeptAnswer(b"place", b"s", b"{ }", "default"))
    check()
    assert jobs.forget(seqs[1], [1, 4]) == 1
    check()
    shop.later(4)
    shop.sweep()
    check()
    while shop.sweeping.kept_answers():
        pass
    shop.database.write(lambda connection: kept_answers.forget(connection, [b"place"]))
    check()
    # The jobs and the settled rows of the open one stay, and the question, which has sums.
    assert 2 * JOB_BYTES < sizes.all()[0].bytes < 1_600


def test_an_answer_that_tells_of_a_deleted_decision_is_not_kept(shop: Shop) -> None:
    kept = KeptAnswers(shop.database, shop.clock)
    decided = shop.decisions.add(record())
    kept.keep(KeptAnswer(b"place", b"s", b"{}", None, decided))
    assert kept.find(b"place") is not None
    shop.later(4)
    shop.sweep()
    kept.keep(KeptAnswer(b"place", b"s", b"{}", None, decided))
    assert kept.find(b"place") is None


def test_of_a_forgotten_answer_it_is_known_that_there_was_one(shop: Shop) -> None:
    kept = KeptAnswers(shop.database, shop.clock)
    kept.keep(KeptAnswer(b"place", b"s", b"{}", "default", None))
    place = [b"place", b"none"]
    assert shop.database.write(lambda connection: kept_answers.forget(connection, place)) == 1
    found = kept.find(b"place")
    assert found == KeptAnswer(b"place", b"", None) and found.is_forgotten


def test_a_page_after_a_decision_that_was_too_old_is_empty(shop: Shop) -> None:
    shop.later(-10)
    old = shop.decisions.add(record())
    shop.later(10)
    shop.sweep()
    assert shop.decisions.page("default", 10, old).entries == []
    Retentions(shop.database).remove("default")
    with pytest.raises(UnknownDecision):
        shop.decisions.page("default", 10, old)


def test_wordings_that_nothing_refers_to_go_once_an_hour(shop: Shop) -> None:
    ruled = [asked("topic", wording, None) for wording in ("First?", "Second?", "Third?")]
    shop.decisions.add(record(ruled[0]))
    shop.later(4)
    for one in ruled[1:]:
        shop.decisions.add(record(one))
    shop.sweep()
    assert shop.sweeping.wordings() == 1
    assert shop.count("questions") == 2
    shop.later(4)
    shop.sweep()
    assert shop.sweeping.wordings() == 2
    assert QuestionVersions(shop.database).latest("default", "topic") is None
    assert shop.sweeping.wordings() == 0


def test_wordings_go_a_few_at_a_time_until_the_server_stops(shop: Shop) -> None:
    for start in range(0, 250, 50):
        shop.decisions.add(
            record(*(asked(f"q{n}", f"Wording {n}?", None) for n in range(start, start + 50)))
        )
    shop.later(4)
    shop.sweep()
    looks: list[int] = []

    def goes_on() -> bool:
        looks.append(shop.count("questions"))
        return len(looks) < 5

    assert shop.sweeping.wordings(goes_on) == 200
    # First the keys go, as many at a time, and then the wordings that none has any more.
    assert looks == [250, 250, 250, 150, 50]


def test_as_many_keys_go_as_there_are(shop: Shop) -> None:
    """10,000 an hour went, and an API key may make 2,000,000."""
    shop.decisions.add(record(*(asked(f"q{n}", f"Wording {n}?", None) for n in range(250))))
    shop.later(4)
    shop.sweep()
    drop_keys(shop.database, int(shop.clock() * 1000), lambda: True, most=100)
    assert shop.count("asked") == 0


def test_answers_for_repeats_are_deleted_after_a_day_though_no_others_come(shop: Shop) -> None:
    kept = KeptAnswers(shop.database, shop.clock)
    kept.keep(KeptAnswer(b"a", b"s", b"{}"))
    assert not shop.sweeping.kept_answers()
    assert shop.count("kept_answers") == 1
    shop.later(1.1)
    shop.sweeping.kept_answers()
    assert shop.count("kept_answers") == 0


def test_an_era_ends_after_as_many_days_as_decisions_are_kept(shop: Shop) -> None:
    eras = Eras(shop.database, shop.clock)
    ours, others = eras.of("default"), eras.of("other")
    shop.later(3)
    assert eras.of("default") != ours
    assert eras.of("other") == others


def test_every_table_that_refers_to_decisions_is_known(shop: Shop) -> None:
    rows = shop.database.rows(
        "SELECT tables.name FROM sqlite_master AS tables "
        "JOIN pragma_foreign_key_list(tables.name) AS keys "
        "WHERE tables.type = 'table' AND keys.'table' = 'decisions'"
    )
    # What refers to a decision is deleted, changed or kept with it in `svc/store/erasing.py`.
    assert {row["name"] for row in rows} == {*TABLES}


def test_with_a_retention_that_changes_no_answer_is_remembered_any_more(shop: Shop) -> None:
    told, retentions = Eras(shop.database, lambda: shop.clock.now), Retentions(shop.database)
    found = [told.of("default")]
    retentions.set("default", 3)
    found.append(told.of("default"))
    retentions.remove("default")
    assert told.of("default") not in found
