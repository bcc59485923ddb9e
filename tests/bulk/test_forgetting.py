"""Rows of jobs that are forgotten while they wait."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from typing import cast

import pytest

from svc.bootstrap import Shared
from svc.bulk.stripping import strip
from svc.bulk.sweeping import sweep
from svc.records import Answer, Source
from svc.store import (
    Database,
    Forgetting,
    Forgotten,
    JobRow,
    JobStatus,
    KeptAnswer,
    KeptAnswers,
    ProjectSizes,
    Retentions,
    Spool,
    Subject,
)
from svc.store.decisions import Decisions
from svc.store.erasing import erase
from tests.bulk.conftest import World
from tests.bulk.test_runner import Gate, has_answered, opened, prompt
from tests.store.records import asked, record

Make = Callable[..., World]
DAY_S = 86_400.0


def forgetting(one: World) -> Forgetting:
    services = one.services
    spool = Spool(services.database, one.settings.db, one.settings.master_key)
    return Forgetting(services.database, services.jobs, spool, strip)


class Cut(Exception):
    """The process ends."""


class CutDatabase:
    """A database for so many writes; before each larger change of it something happens."""

    def __init__(self, database: Database, writes: int, happens: Callable[[], object]) -> None:
        self._database, self._writes, self._happens = database, writes, happens

    def write(self, change: Callable[..., object]) -> object:
        if not self._writes:
            raise Cut
        self._writes -= 1
        return self._database.write(change)

    def changing(self) -> AbstractContextManager[None]:
        self._happens()
        return self._database.changing()

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


def cut(one: World, writes: int, happens: Callable[[], object] = lambda: None) -> Forgetting:
    """One that ends after so many writes."""
    services = one.services
    spool = Spool(services.database, one.settings.db, one.settings.master_key)
    database = cast(Database, CutDatabase(services.database, writes, happens))
    return Forgetting(database, services.jobs, spool, strip)


def rows(count: int, subject: int) -> list[dict[str, object]]:
    """Rows, every one after `subject` about the same."""
    return [
        {"id": f"r{n}", "state": f"Cat {n}.", "ref": "ann" if n >= subject else f"crm-{n}"}
        for n in range(1, count + 1)
    ]


def test_rows_that_wait_are_never_asked_and_leave_the_file(world: Make) -> None:
    one = world(opened())
    job_id = one.submit(rows=rows(6, subject=5), project="shop")
    counted = forgetting(one).count(Subject("shop", ref="ann"))
    assert (counted.decisions, counted.waiting) == (0, 2)
    assert forgetting(one).forget(Subject("shop", ref="ann")).waiting == 2
    with closing(one.services.spool.opened(job_id)) as file:
        found = file.rows(lambda _: True)
    assert found is not None
    assert found[1][3:] == [found[1][3], "{}", "{}"] and "crm-4" in found[1][3]
    assert one.spooled() == [job_id]
    with one.running():
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (4, 2)
    lines = one.results(job_id)
    assert [line["id"] for line in lines] == ["r1", "r2", "r3", "r4", "", ""]
    assert {line["error"]["type"] for line in lines[4:]} == {"not_found"}
    assert not any("Cat 5." in prompt(body) for body in one.provider.bodies)


def test_rows_that_were_forgotten_stay_so_after_an_older_database_is_put_back(world: Make) -> None:
    one = world(opened())
    job_id = one.submit(rows=rows(6, subject=5), project="shop")
    forgetting(one).forget(Subject("shop", ref="ann"))
    one.settled_no_more()
    with one.running():
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (4, 2)
    assert [line["id"] for line in one.results(job_id)] == ["r1", "r2", "r3", "r4", "", ""]


def test_a_state_is_found_in_rows_too(world: Make) -> None:
    one = world(opened())
    one.submit(rows=rows(3, subject=9), project="shop")
    asked = Subject("shop", states=("Cat 2.",))
    assert forgetting(one).forget(asked).waiting == 1
    assert forgetting(one).count(asked).waiting == 0
    assert forgetting(one).count(Subject("other", states=("Cat 3.",))).waiting == 0


def test_rows_that_failed_lose_their_ids_while_their_job_goes_on_and_after_it(world: Make) -> None:
    one = world()
    sizes = ProjectSizes(one.services.database)
    sizes.set("shop", 1_000_000)
    given = rows(3, subject=2)
    going_on, ended = (one.submit(rows=given, project="shop") for _ in range(2))
    for job_id, row_id in ((going_on, "r2"), (ended, "ann"), (ended, "r3")):
        job = one.services.jobs.get(job_id)
        number = 3 if row_id == "r3" else 2
        one.services.jobs.fail(JobRow(job.seq, number, row_id), '{"type":"said of ann"}')
    one.services.jobs.end(ended, JobStatus.CANCELLED)
    subject = Subject("shop", ref="ann")
    counted = forgetting(one).count(subject)
    assert (counted.waiting, counted.failed) == (1, 2)
    found = forgetting(one).forget(subject)
    assert (found.waiting, found.failed) == (1, 2)
    stored = one.services.database.rows("SELECT row, job_rows.id, error FROM job_rows")
    assert [(row, own_id) for row, own_id, _ in stored] == [(2, ""), (3, ""), (3, "r3")]
    assert ["ann" in error for _, _, error in stored] == [False, False, True]
    assert one.services.jobs.get(going_on).failed == 2
    (size,) = sizes.all()
    sizes.set("shop", 1_000_000)
    assert sizes.all() == [size]
    assert forgetting(one).count(subject) == Forgotten()
    with one.running():
        job = one.ended(going_on)
    assert (job["answered"], job["failed"]) == (1, 2)


def test_answers_that_tell_of_it_are_found_also_where_they_are_compressed(world: Make) -> None:
    one = world(opened())
    decided = one.services.decisions.add(record(project="shop", ref="ann"))
    kept = KeptAnswers(one.services.database)
    for place, words in ((b"short", ""), (b"long", "many " * 1_000), (b"other", "many " * 1_000)):
        told = "" if place == b"other" else decided
        kept.keep(KeptAnswer(place, b"sent", f'{{"id":"{told}","words":"{words}"}}'.encode()))
    subject = Subject("shop", ref="ann")
    assert forgetting(one).count(subject).repeats == 2
    assert forgetting(one).forget(subject).repeats == 2
    found = {place: kept.find(place) for place in (b"short", b"long", b"other")}
    assert [one is not None and one.is_forgotten for one in found.values()] == [True, True, False]


def test_who_ends_at_any_instant_leaves_nothing_that_the_next_run_does_not_find(
    world: Make,
) -> None:
    one = world(opened())
    database, whole = one.services.database, False
    kept = KeptAnswers(database)
    (meta,) = database.rows("SELECT count(*) FROM meta")
    for writes in itertools.count():
        subject, place = Subject("shop", ref=f"ann-{writes}"), b"place %d" % writes
        of_ann = record(asked("topic", f"Is it Ann {writes}?"), project="shop", ref=subject.ref)
        for _ in range(3):
            decided = one.services.decisions.add(of_ann)
        kept.keep(KeptAnswer(place, b"sent", f'{{"id":"{decided}"}}'.encode()))
        one.services.decisions.add(record(asked("topic", "Is it he?"), project="shop"))
        with suppress(Cut):
            cut(one, writes).forget(subject)
            whole = True
        forgetting(one).forget(subject)
        assert forgetting(one).count(subject) == Forgotten()
        found = kept.find(place)
        assert found is not None and found.is_forgotten
        wordings = [row[0] for row in database.rows("SELECT definition FROM questions")]
        assert len(wordings) == 1 and "Is it he?" in wordings[0]
        if whole:
            break
    assert writes > 3
    # That rows were deleted is noted, and when keys were looked for.
    (after,) = database.rows("SELECT count(*) FROM meta WHERE name NOT GLOB 'last_*'")
    assert after == meta


def test_answers_that_no_model_gave_do_not_count_for_the_sums_of_others(world: Make) -> None:
    one = world(opened())
    decisions, database = one.services.decisions, one.services.database
    for _ in range(3):
        decisions.add(record(project="shop"))
    (row,) = database.rows("SELECT max(seq) AS last FROM decisions")
    # As a retention does, which leaves the sums.
    assert database.write(lambda connection: erase(connection, range(1, row["last"] + 1)))
    skipped = {"topic": Answer(Source.SKIPPED, {"skipped": True})}
    for _ in range(3):
        decisions.add(
            record(asked("topic", reading=None), answers=skipped, ref="ann", project="shop")
        )
    assert forgetting(one).forget(Subject("shop", ref="ann")).decisions == 3
    (sums,) = database.rows("SELECT sum(decisions) AS answers FROM weeks")
    assert sums["answers"] == 3


def test_a_wording_of_two_subjects_goes_with_the_second_of_them(world: Make) -> None:
    one = world(opened())
    for ref in ("ann", "ann", "bea"):
        one.services.decisions.add(record(project="shop", ref=ref))
    assert forgetting(one).forget(Subject("shop", ref="ann")).wordings == 0
    assert forgetting(one).forget(Subject("shop", ref="bea")).wordings == 1
    assert one.services.database.rows("SELECT * FROM questions") == []
    assert one.services.database.rows("SELECT * FROM meta WHERE name GLOB 'forgotten_*'") == []


def test_two_who_forget_the_same_at_once_both_end(world: Make) -> None:
    one = world(opened())
    for _ in range(3):
        one.services.decisions.add(record(project="shop", ref="ann"))
    subject = Subject("shop", ref="ann")
    other = forgetting(one)
    assert cut(one, 50, lambda: other.forget(subject)).forget(subject).decisions == 3
    assert forgetting(one).count(subject) == Forgotten()


def test_a_job_that_runs_goes_on_without_them(world: Make) -> None:
    gate = Gate()
    one = world(gate)
    given = [{**row, "state": f"Cat {n}. {'x' * 4_000}"} for n, row in enumerate(rows(200, 101), 1)]
    job_id = one.submit(rows=given, project="shop")
    with one.running():
        while not one.provider.bodies:
            time.sleep(0.01)
        # Some of the first rows are under way, and the others of their block are in memory.
        forgotten = forgetting(one).forget(Subject("shop", ref="ann"))
        gate.go.set()
        job = one.ended(job_id)
    assert forgotten.waiting == 100
    assert (job["answered"], job["failed"]) == (100, 100)
    assert not any("Cat 150." in prompt(body) for body in one.provider.bodies)


def test_a_row_under_way_is_not_stored(world: Make, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    one = world(gate)
    job_id = one.submit(rows=rows(2, subject=2), project="shop")
    with one.running():
        while len(one.provider.bodies) < 2:
            time.sleep(0.01)
        forgetting(one).forget(Subject("shop", ref="ann"))
        gate.go.set()
        one.ended(job_id)
    assert has_answered(one, job_id, 1)
    page = one.client.get("/v1/audit?project=shop").get_json()
    assert [entry["ref"] for entry in page["entries"]] == ["crm-1"]
    # It is no fault that an operator could mend.
    assert "the database refused" not in caplog.text


def test_keys_of_questions_go_with_the_last_decision_that_has_them(world: Make) -> None:
    one = world(opened())
    database = one.services.database
    before = Decisions(database, lambda: time.time() - DAY_S)
    for key, ref in (("hers", "ann"), ("his", "bob")):
        before.add(record(asked(key, "By rules?", reading=None), project="shop", ref=ref))
    one.services.decisions.add(record(asked("new", "By rules?", reading=None), project="shop"))
    forgetting(one).forget(Subject("shop", ref="ann"))
    assert {key for (key,) in database.rows("SELECT key FROM asked")} == {"hers", "his", "new"}
    forgetting(one).forget(Subject("shop", ref="bob"))
    assert [key for (key,) in database.rows("SELECT key FROM asked")] == ["new"]


def test_a_sweep_deletes_what_is_too_old_and_ends(world: Make) -> None:
    one = world(opened())
    database = one.services.database
    before = Decisions(database, lambda: time.time() - 5 * DAY_S)
    for _ in range(250):
        before.add(record())
    young = one.services.decisions.add(record())
    sweep(one.settings, Shared(), threading.Event())
    assert len(one.services.decisions.page("default", 1_000).entries) == 251
    Retentions(database).set("default", 2)
    with one.services.spool.sweeping() as alone:
        assert alone
        # Another one is at it.
        sweep(one.settings, Shared(), threading.Event())
    assert len(one.services.decisions.page("default", 1_000).entries) == 251
    sweep(one.settings, Shared(), threading.Event())
    (entry,) = one.services.decisions.page("default", 1_000).entries
    assert entry.id == young


def test_a_sweep_deletes_what_repeats_get_no_more_though_no_project_has_a_retention(
    world: Make,
) -> None:
    one = world(opened())
    database = one.services.database
    before = KeptAnswers(database, lambda: time.time() - 2 * DAY_S)
    before.keep(KeptAnswer(b"place", b"sent", b"{}"))
    sweep(one.settings, Shared(), threading.Event())
    assert database.rows("SELECT place FROM kept_answers") == []


def test_a_sweep_stops_when_it_is_told_to(world: Make) -> None:
    one = world(opened())
    before = Decisions(one.services.database, lambda: time.time() - 5 * DAY_S)
    for _ in range(5):
        before.add(record())
    Retentions(one.services.database).set("default", 2)
    stop = threading.Event()
    stop.set()
    sweep(one.settings, Shared(), stop)
    assert len(one.services.decisions.page("default", 10).entries) == 5
