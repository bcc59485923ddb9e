from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from svc import jsontext
from svc.store import (
    Job,
    JobRow,
    Jobs,
    JobStatus,
    KeptAnswer,
    KeptAnswers,
    ProjectFull,
    ProjectSizes,
    StorageError,
    TooManyJobs,
    UnknownJob,
    new_id,
)
from svc.store.decisions import Decisions
from tests.clock import Clock
from tests.store.records import record


def shape(fields, answers, tags):
    return f'{jsontext.dumps(fields)[:-1]},"answers":{answers}}}'


def stored(jobs, rows=3, **fields):
    given = {"project": "default", "api_key": None, "created_at": 1, "expires_at": 2, **fields}
    job = Job(id=new_id(), rows=rows, **given)
    jobs.add(job)
    return jobs.get(job.id)


def results(jobs, job, after=0, most_bytes=100_000):
    found, on = jobs.results(job.id, after, most_bytes, shape)
    return [one.number for one in found], on


@pytest.fixture
def jobs(database):
    return Jobs(database)


def test_a_job_is_found_as_it_was_stored(jobs):
    job = stored(jobs, project="shop", api_key="key_1")
    assert (job.seq, job.status, job.answered, job.api_key) == (1, "waiting", 0, "key_1")
    assert jobs.open() == [job]
    with pytest.raises(UnknownJob):
        jobs.get("job_none")


def test_a_row_and_its_decision_are_stored_together_and_the_last_one_ends_the_job(jobs, database):
    job, decisions = stored(jobs, rows=2), Decisions(database)
    first = decisions.add(record(cost_usd=0.5), JobRow(job.seq, 1, "a"))
    halfway = jobs.get(job.id)
    assert (halfway.status, halfway.answered, halfway.cost_usd) == ("running", 1, 0.5)
    jobs.fail(JobRow(job.seq, 2, "b"), '{"type":"model_error"}')
    ended = jobs.get(job.id)
    assert (ended.status, ended.answered, ended.failed) == ("done", 1, 1)
    assert ended.ended_at is not None and jobs.open() == []
    found, on = jobs.results(job.id, 0, 100_000, shape)
    assert on is None
    assert [(one.number, one.id) for one in found] == [(1, "a"), (2, "b")]
    assert found[0].decision is not None and first in found[0].decision
    assert (found[1].decision, found[1].error) == (None, '{"type":"model_error"}')


def test_a_row_is_never_settled_twice(jobs, database):
    job, decisions = stored(jobs), Decisions(database)
    decisions.add(record(), JobRow(job.seq, 1, "a"))
    with pytest.raises(StorageError):
        decisions.add(record(), JobRow(job.seq, 1, "a"))
    with pytest.raises(StorageError):
        jobs.fail(JobRow(job.seq, 1, "a"), "{}")
    assert (jobs.get(job.id).answered, jobs.get(job.id).failed) == (1, 0)
    assert len(decisions.page("default", 10).entries) == 1
    assert jobs.is_settled(JobRow(job.seq, 1, "a")) and not jobs.is_settled(JobRow(1, 2, "b"))
    assert bytes(jobs.settled(job)) == b"\0\1\0\0"


def test_rows_that_come_at_once_are_all_counted(jobs, database):
    job, decisions = stored(jobs, rows=200), Decisions(database)
    with ThreadPoolExecutor(16) as threads:
        rows = [JobRow(job.seq, number, str(number)) for number in range(1, 201)]
        list(threads.map(lambda row: decisions.add(record(), row), rows))
    assert (jobs.get(job.id).answered, jobs.get(job.id).status) == (200, "done")


def test_the_results_of_an_open_job_end_before_the_first_row_that_is_missing(jobs, database):
    job, decisions = stored(jobs, rows=4), Decisions(database)
    for number in (1, 2, 4):
        decisions.add(record(), JobRow(job.seq, number, str(number)))
    assert results(jobs, job) == ([1, 2], 2)
    assert results(jobs, job, after=2) == ([], 2)
    assert jobs.end(job.id, JobStatus.CANCELLED)
    assert results(jobs, job) == ([1, 2, 4], None)


def test_a_page_of_results_has_so_many_bytes_but_always_one_row(jobs, database):
    job, decisions = stored(jobs, rows=3), Decisions(database)
    for number in (1, 2, 3):
        decisions.add(record(), JobRow(job.seq, number, str(number)))
    assert results(jobs, job, most_bytes=1) == ([1], 1)
    assert results(jobs, job, after=1, most_bytes=1) == ([2], 2)
    assert results(jobs, job, after=2, most_bytes=1) == ([3], None)


def test_a_job_ends_once(jobs, database):
    job = stored(jobs, rows=1)
    assert jobs.end(job.id, JobStatus.CANCELLED)
    assert not jobs.end(job.id, JobStatus.EXPIRED)
    # A row that was under way is stored, and the job stays cancelled.
    Decisions(database).add(record(), JobRow(job.seq, 1, "a"))
    assert (jobs.get(job.id).status, jobs.get(job.id).answered) == ("cancelled", 1)


def test_what_a_job_waits_for_is_noted_while_it_is_open(jobs):
    job = stored(jobs)
    jobs.note(job.id, "the daily limit", 12)
    noted = jobs.get(job.id)
    assert (noted.status, noted.waiting_for, noted.ends_at) == ("running", "the daily limit", 12)
    jobs.end(job.id, JobStatus.FAILED, "because")
    jobs.note(job.id, "nothing", 13)
    ended = jobs.get(job.id)
    assert (ended.status, ended.reason, ended.waiting_for) == ("failed", "because", None)


def test_jobs_of_a_project_are_listed_newest_first(jobs):
    made = [stored(jobs, project="shop") for _ in range(3)]
    stored(jobs, project="bank")
    page = jobs.page("shop", 2)
    assert [job.id for job in page.jobs] == [made[2].id, made[1].id]
    last = jobs.page("shop", 2, page.next_before)
    assert ([job.id for job in last.jobs], last.next_before) == ([made[0].id], None)
    with pytest.raises(UnknownJob):
        jobs.page("bank", 2, made[0].id)


def test_a_key_has_only_so_many_open_jobs(database):
    jobs = Jobs(database, most_open=2)
    first = stored(jobs)
    stored(jobs)
    with pytest.raises(TooManyJobs):
        stored(jobs)
    stored(jobs, api_key="key_1")
    jobs.end(first.id, JobStatus.CANCELLED)
    stored(jobs)


def test_all_keys_together_have_only_so_many_open_jobs(database):
    jobs = Jobs(database, most_of_all=2)
    first = stored(jobs, api_key="key_1")
    jobs.check_room("key_3")
    stored(jobs, api_key="key_2")
    with pytest.raises(TooManyJobs, match="of all keys"):
        jobs.check_room("key_3")
    with pytest.raises(TooManyJobs, match="of all keys"):
        stored(jobs, api_key="key_3")
    jobs.end(first.id, JobStatus.CANCELLED)
    stored(jobs, api_key="key_3")


def test_a_page_counts_the_bytes_of_ids_as_they_are_sent(jobs):
    job = stored(jobs, rows=10)
    for number in range(1, 11):
        jobs.fail(JobRow(job.seq, number, "\U0001f600" * 128), "{}")
    # Each of 128 characters of four bytes.
    assert results(jobs, job, most_bytes=1_200) == ([1, 2], 2)
    job = stored(jobs, rows=10)
    for number in range(1, 11):
        jobs.fail(JobRow(job.seq, number, "\1" * 128), "{}")
    # As JSON each takes six.
    assert results(jobs, job, most_bytes=1_700) == ([1, 2], 2)


def test_a_job_is_there_for_thirty_days_after_its_end(database):
    clock = Clock(1_000_000_000.0)
    jobs = Jobs(database, clock)
    job, going_on = stored(jobs, rows=1), stored(jobs, rows=1)
    jobs.fail(JobRow(job.seq, 1, "a"), "{}")
    clock.now += 30 * 86_400 - 1
    assert not jobs.forget_old()
    assert jobs.get(job.id).status == "done" and results(jobs, job) == ([1], None)
    clock.now += 1
    for gone in (lambda: jobs.get(job.id), lambda: results(jobs, job)):
        with pytest.raises(UnknownJob):
            gone()
    assert [one.id for one in jobs.page("default", 10).jobs] == [going_on.id]
    with pytest.raises(UnknownJob):
        jobs.page("default", 10, job.id)
    assert jobs.forget_old() and not jobs.forget_old()
    assert database.rows("SELECT id FROM jobs")[0]["id"] == going_on.id


def test_no_job_has_the_number_of_one_that_was_deleted(database):
    """Under that number stands what a job has spent of its budget."""
    clock = Clock(1_000_000_000.0)
    jobs = Jobs(database, clock)
    job = stored(jobs, rows=1)
    jobs.fail(JobRow(job.seq, 1, "a"), "{}")
    clock.now += 30 * 86_400
    assert jobs.forget_old() and database.rows("SELECT id FROM jobs") == []
    assert stored(jobs).seq == job.seq + 1


def test_old_jobs_are_deleted_in_steps_and_free_the_bytes_of_their_project(database):
    clock = Clock(1_000_000_000.0)
    jobs, sizes = Jobs(database, clock), ProjectSizes(database)
    sizes.set("default", 1_000_000)
    Decisions(database).add(record())
    (before,) = sizes.all()
    job = stored(jobs, rows=2_500)
    with ThreadPoolExecutor(16) as threads:
        rows = [JobRow(job.seq, number, f"r{number}") for number in range(1, 2_501)]
        list(threads.map(lambda row: jobs.fail(row, "{}"), rows))
    assert sizes.all()[0].bytes > before.bytes + 2_500 * 50
    clock.now += 30 * 86_400
    steps = 0
    while jobs.forget_old():
        steps += 1
        assert len(database.rows("SELECT row FROM job_rows")) == max(0, 2_500 - steps * 1_000)
    assert steps == 3
    assert sizes.all() == [before]


def test_one_step_deletes_many_old_jobs(database):
    """Beside an open job there is one step a second, and a key may end ten jobs in it."""
    clock = Clock(1_000_000_000.0)
    jobs = Jobs(database, clock)
    for _ in range(20):
        job = stored(jobs, rows=1)
        jobs.fail(JobRow(job.seq, 1, "a"), "{}")
    clock.now += 30 * 86_400
    assert jobs.forget_old() and database.rows("SELECT id FROM jobs") == []
    assert not jobs.forget_old()


def test_rows_of_jobs_fill_a_project_whenever_its_limit_was_set(jobs, database):
    sizes, decisions = ProjectSizes(database), Decisions(database)
    sizes.set("default", 1_000_000)
    job = stored(jobs, rows=3)
    decisions.add(record(), JobRow(job.seq, 1, "ä"))
    jobs.fail(JobRow(job.seq, 2, "b"), '{"message":"Não"}')
    (counted,) = sizes.all()
    sizes.set("default", 1_000_000)
    assert sizes.all() == [counted]
    sizes.set("default", counted.bytes)
    with pytest.raises(ProjectFull, match="default"):
        jobs.fail(JobRow(job.seq, 3, "c"), "{}")
    assert jobs.get(job.id).failed == 1


def test_the_answer_for_repeats_is_kept_with_the_job(jobs, database):
    kept = KeptAnswer(b"place", b"sent", b"{}")
    job = Job(id=new_id(), project="p", api_key=None, created_at=1, expires_at=2, rows=1)
    jobs.add(job, kept)
    assert KeptAnswers(database).find(b"place") == kept
