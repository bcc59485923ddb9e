"""The process that runs jobs: from its first look to its end."""

from __future__ import annotations

import threading
from functools import partial

from svc import limits
from svc.bootstrap import Services, Shared, build
from svc.bulk.answering import Answering
from svc.bulk.batched_jobs import BatchedJobs
from svc.bulk.runner import Pauses, Runner
from svc.deadline import Deadline
from svc.settings import Settings
from svc.store import Database, Jobs, Spool, UnknownJob

# Those of a server; tests have shorter ones.
PAUSES = Pauses()

# The pause before it is looked again whether another process still runs the jobs.
TURN_S = 1.0

# The pause between two transactions that delete rows of old jobs.
SWEPT_EVERY_S = 0.05


def run_jobs(
    settings: Settings, shared: Shared, stop: threading.Event, pauses: Pauses = PAUSES
) -> None:
    """Run the open jobs of a database; returns when there are none, or it is to stop.

    Of several processes, also of several servers, one runs them, and the others wait for it.
    Raises `SettingsError` and `StorageError`, and `RuntimeError` where the system allows it too few
    threads.
    """
    if not _has_work(settings, shared, stop):
        return
    services = build(settings, shared, gives_way=True)
    try:
        # Without the thread that all calls need, rows would have errors for answers.
        services.core.client.begin()
        while not stop.is_set():
            with services.spool.running() as alone:
                if alone:
                    _run(services, stop, pauses)
                    return
            if not services.jobs.open():
                return
            stop.wait(TURN_S)
    finally:
        services.close()


def _has_work(settings: Settings, shared: Shared, stop: threading.Event) -> bool:
    """Whether there is an open job, or a file that none may need; old jobs are deleted before."""
    database = Database.open(settings.db, turn=shared.write_lock, served=shared.file)
    try:
        jobs = Jobs(database)
        while not stop.is_set() and jobs.forget_old():
            stop.wait(SWEPT_EVERY_S)
        spool = Spool(database, settings.db, settings.master_key)
        return bool(spool.files() or spool.books() or jobs.open())
    finally:
        database.close()


def _run(services: Services, stop: threading.Event, pauses: Pauses) -> None:
    jobs = services.jobs

    def is_open(job_id: str) -> bool:
        try:
            return jobs.get(job_id).is_open
        except UnknownJob:
            return False

    def revoked() -> set[str]:
        return {key.id for key in services.keys.all() if key.revoked_at is not None}

    parts = (services.core.engine, services.decisions.add, jobs)
    deadline = partial(Deadline, limits.REQUEST_DEADLINE_S, trace=services.traces)
    answering = Answering(*parts, stop, services.metrics.decided, deadline)
    batched = BatchedJobs(services, answering)
    services.spool.sweep(is_open)
    batched.sweep(is_open)
    Runner(jobs, services.spool, answering, stop, revoked, batched, pauses).run()
