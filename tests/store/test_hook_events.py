"""Events wait for their turn, by hook and subject, and are each stored once."""

from __future__ import annotations

import itertools
import logging

import pytest

from svc import limits
from svc.store.database import Database
from svc.store.hook_events import DAY_MS, REMEMBERED_DAYS, HookEvents, NewEvent
from svc.store.hooks import HookKind, Hooks, OpenedHook
from svc.store.jobs import Job, Jobs, JobStatus
from tests.clock import Clock

OPENED = OpenedHook("https://example.com/", "whsec_", False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hooks(database: Database, clock: Clock) -> Hooks:
    return Hooks(database, "master", clock)


@pytest.fixture
def events(database: Database, clock: Clock) -> HookEvents:
    return HookEvents(database, clock)


def added(hooks: Hooks, database: Database, *kinds: HookKind) -> int:
    hook_id = hooks.add("shop", kinds or set(HookKind), "https://example.com", OPENED)
    return int(database.rows("SELECT seq FROM hooks WHERE id = ?", hook_id)[0][0])


def event(hook: int, key: str, subject: str = "a") -> NewEvent:
    return NewEvent(hook, key, subject, f'{{"key": "{key}"}}', 1_000_000)


def bodies(events: HookEvents) -> list[str]:
    return [one.body for one in events.due()]


def test_an_event_is_stored_once_for_a_hook(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    one, other = added(hooks, database), added(hooks, database)
    events.add([event(one, "k"), event(one, "k"), event(other, "k")])
    events.add([event(one, "k")])
    assert [found.hook for found in events.due()] == [one, other]
    assert len({found.id for found in events.due()}) == 2


def test_an_event_for_a_removed_hook_is_left_out(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    hook = added(hooks, database)
    events.add([event(hook, "k")])
    hooks.remove(hooks.all()[0].id)
    events.add([event(hook, "l")])
    assert events.due() == []
    assert database.rows("SELECT * FROM hook_events") == []


def test_later_events_of_a_subject_wait_for_the_first_and_other_subjects_do_not(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    hook = added(hooks, database)
    events.add([event(hook, "1"), event(hook, "2"), event(hook, "3", "b")])
    assert bodies(events) == ['{"key": "1"}', '{"key": "3"}']
    events.failed(events.due()[0], "it answered 500", 5.0)
    assert bodies(events) == ['{"key": "3"}']
    events.delivered(events.due()[0])
    assert bodies(events) == []


def test_a_failed_event_comes_again_after_its_pause_and_then_the_next(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    hook = added(hooks, database)
    events.add([event(hook, "1"), event(hook, "2")])
    events.failed(events.due()[0], "it answered 500", 5.0)
    clock.now += 4.9
    assert events.due() == []
    clock.now += 0.2
    (again,) = events.due()
    assert (again.attempts, again.tried_at) == (1, 1_000_000)
    (shown,) = hooks.all()
    assert (shown.failing_since, shown.failure) == (1_000_000, "it answered 500")
    events.delivered(again)
    (shown,) = hooks.all()
    assert (shown.failing_since, shown.failure, shown.waiting) == (None, None, 1)
    assert shown.delivered_at == 1_005_100
    assert bodies(events) == ['{"key": "2"}']


def test_what_is_given_up_is_counted_and_the_next_of_the_subject_goes(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    hook = added(hooks, database)
    events.add([event(hook, "1"), event(hook, "2")])
    events.failed(events.due()[0], "it answered 500", None)
    assert bodies(events) == ['{"key": "2"}']
    assert hooks.all()[0].given_up == 1


def test_a_postponed_event_counts_no_attempt(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    events.add([event(added(hooks, database), "1")])
    events.postponed(events.due()[0], "no key", 60.0)
    assert events.due() == []
    clock.now += 60
    (again,) = events.due()
    assert (again.attempts, again.tried_at) == (0, None)
    assert hooks.all()[0].failure == "no key"


def test_a_disabled_hook_gets_nothing_more(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    hook = added(hooks, database)
    events.add([event(hook, "1")])
    events.disable(hook, "gone")
    assert events.due() == []
    assert hooks.all()[0].disabled == "gone" and hooks.wanted() == {}


def test_an_enabled_hook_gets_what_waits_at_once_and_what_ended_meanwhile(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    hook, jobs = added(hooks, database), Jobs(database, clock)
    events.add([event(hook, "1"), event(hook, "2")])
    events.failed(events.due()[0], "it answered 500", 36_000.0)
    events.disable(hook, "gone")
    clock.now += 60
    jobs.add(job(1, 1_060_000))
    jobs.end("job_1", JobStatus.DONE)
    assert events.ended_jobs(1_000).jobs == [] and bodies(events) == []
    (shown,) = hooks.all()
    assert hooks.enable(shown.id) and not hooks.enable("hook_0")
    assert hooks.all()[0].disabled is None and hooks.wanted() != {}
    assert bodies(events) == ['{"key": "1"}']
    assert [ended.id for ended in events.ended_jobs(1_000).jobs] == ["job_1"]


@pytest.mark.parametrize("ahead_s", [3_600.0, 400 * DAY_MS / 1000])
def test_new_events_do_not_wait_for_a_clock_that_was_set_back(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock, ahead_s: float
) -> None:
    clock.now += ahead_s
    events.add([event(added(hooks, database), "1")])
    clock.now -= ahead_s
    assert len(events.due()) == 1


def test_a_clock_that_was_set_back_does_not_make_events_wait_for_ever(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    clock.now += 400 * DAY_MS / 1000
    events.add([event(added(hooks, database), "1")])
    events.failed(events.due()[0], "it answered 500", 5.0)
    clock.now -= 400 * DAY_MS / 1000
    assert len(events.due()) == 1


def test_hooks_that_answer_come_before_those_that_fail(
    database: Database, hooks: Hooks, events: HookEvents
) -> None:
    failing, other = added(hooks, database), added(hooks, database)
    events.add([event(failing, "1", "a"), event(failing, "2", "b"), event(other, "3")])
    events.failed(events.due()[0], "it answered 500", 5.0)
    assert [one.hook for one in events.due()] == [other, failing]


def test_of_too_many_waiting_events_the_oldest_is_given_up(
    database: Database, hooks: Hooks, events: HookEvents, caplog: pytest.LogCaptureFixture
) -> None:
    hook = added(hooks, database)
    events.add(event(hook, str(n)) for n in range(limits.HOOK_WAITING))
    assert hooks.all()[0].waiting == limits.HOOK_WAITING
    with caplog.at_level(logging.WARNING):
        events.add([event(hook, "last")])
    (shown,) = hooks.all()
    assert (shown.waiting, shown.given_up) == (limits.HOOK_WAITING, 1)
    assert bodies(events) == ['{"key": "1"}']
    assert "too many events wait" in caplog.text


def test_settled_events_are_forgotten_after_a_month_and_hold_no_body_before(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    events.add([event(added(hooks, database), "1")])
    events.delivered(events.due()[0])
    ((body,),) = database.rows("SELECT body FROM hook_events")
    assert body == ""
    clock.now += REMEMBERED_DAYS * 86_400
    events.forget_old()
    assert len(database.rows("SELECT * FROM hook_events")) == 1
    clock.now += 1
    events.forget_old()
    assert database.rows("SELECT * FROM hook_events") == []


def test_more_settled_events_are_forgotten_in_a_minute_than_a_key_causes(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    """A key ends 600 jobs a minute, which two hooks are told of."""
    events.add([event(added(hooks, database), "1")])
    events.delivered(events.due()[0])
    columns = "hook, subject, body, created_at, next_at, settled_at"
    database.write(
        lambda connection: connection.execute(
            "WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers "
            f"WHERE n < 2500) INSERT INTO hook_events (id, key, {columns}) "
            f"SELECT 'evt_' || n, n, {columns} FROM numbers, hook_events"
        )
    )
    assert len(database.rows("SELECT seq FROM hook_events")) == 2_500
    clock.now += REMEMBERED_DAYS * 86_400 + 1
    events.forget_old()
    assert database.rows("SELECT seq FROM hook_events") == []


def job(n: int, now_ms: int, project: str = "shop") -> Job:
    return Job(
        id=f"job_{n}",
        project=project,
        api_key=None,
        created_at=now_ms,
        expires_at=now_ms + DAY_MS,
        rows=3,
    )


@pytest.mark.parametrize("status", ["done", "cancelled", "expired", "failed"])
def test_a_job_that_ended_in_any_way_is_found_until_it_is_told(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock, status: str
) -> None:
    hook = added(hooks, database)
    jobs = Jobs(database, clock)
    for n in (1, 2):
        jobs.add(job(n, 1_000_000))
    assert events.ended_jobs(1_000).jobs == []
    clock.now += 1
    jobs.end("job_1", JobStatus(status))
    (ended,) = events.ended_jobs(1_000).jobs
    assert (ended.hook, ended.id, ended.status, ended.rows) == (hook, "job_1", status, 3)
    events.add([event(hook, "batch.done job_1")])
    assert events.ended_jobs(1_000).jobs == []


def test_jobs_of_one_project_do_not_keep_those_of_another_waiting(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    for project in ("shop", "bank"):
        hooks.add(project, {HookKind.BATCH_DONE}, "https://example.com", OPENED)
    jobs = Jobs(database, clock)
    clock.now += 1
    for n in range(1, 302):
        jobs.add(job(n, 1_000_000, "bank" if n == 301 else "shop"))
        jobs.end(f"job_{n}", JobStatus.DONE)
        clock.now += 1
    told = events.ended_jobs(1_000).jobs
    assert len(told) == 200
    assert [one.id for one in told][:3] == ["job_1", "job_301", "job_2"]


def test_many_jobs_are_looked_at_in_parts_from_the_last_to_the_first(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    """Hundreds of thousands of one project were read each minute before others' events."""
    hook = added(hooks, database)
    jobs = Jobs(database, clock)
    clock.now += 1
    for n in range(10, 21):
        jobs.add(job(n, 1_000_000))
        jobs.end(f"job_{n}", JobStatus.DONE)
        # Three end at the same time.
        clock.now += n not in (14, 15)
    before, told = None, []
    while not told or before is not None:
        some, before, _ = events.ended_jobs(4, before=before)
        told.append([ended.id for ended in some])
        events.add([event(hook, f"batch.done {ended.id}") for ended in some])
    assert told[0] == ["job_17", "job_18", "job_19", "job_20"]
    assert sorted(itertools.chain(*told)) == [f"job_{n}" for n in range(10, 21)]
    assert max(map(len, told)) == 4


def test_jobs_of_before_of_others_and_for_other_hooks_are_not_told(
    database: Database, hooks: Hooks, events: HookEvents, clock: Clock
) -> None:
    jobs = Jobs(database, clock)
    jobs.add(job(1, 1_000_000))
    jobs.end("job_1", JobStatus.DONE)
    clock.now += 1
    added(hooks, database, HookKind.DRIFT)
    added(hooks, database, HookKind.BATCH_DONE)
    jobs.add(job(2, 1_001_000, "bank"))
    jobs.end("job_2", JobStatus.DONE)
    assert events.ended_jobs(1_000).jobs == []
