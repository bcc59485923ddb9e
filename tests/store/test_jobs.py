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
    StorageError,
    TooManyJobs,
    UnknownJob,
    new_id,
)
from svc.store.decisions import Decisions
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


def test_the_answer_for_repeats_is_kept_with_the_job(jobs, database):
    kept = KeptAnswer(b"place", b"sent", b"{}")
    job = Job(id=new_id(), project="p", api_key=None, created_at=1, expires_at=2, rows=1)
    jobs.add(job, kept)
    assert KeptAnswers(database).find(b"place") == kept
