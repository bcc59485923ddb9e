"""A job of a running server that is followed to its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from svc.batch import Progress
from svc.cli.asking import Unanswered
from svc.cli.job_results import check_output, end, fetch
from svc.cli.job_text import handed_in, next_lines, summary
from svc.cli.jobs import Job, JobServer
from svc.cli.notices import notice
from svc.cli.server_lines import PATIENCE_S

# The time between two looks at a job, which grows from the first to the last.
FIRST_LOOK_S, LAST_LOOK_S, GROWTH = 0.2, 5.0, 1.5


def follow(
    server: JobServer,
    job: Job,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Job:
    """Show the progress of a job until it has ended; a server that does not answer is waited for.

    Raises `SvcError`.
    """
    progress = Progress(sys.stderr, job.rows, job.settled, sys.stderr.isatty(), unit="rows")
    look_s, patient_until, told = FIRST_LOOK_S, clock() + PATIENCE_S, None
    try:
        while job.is_open:
            progress.show(job.settled, job.failed, job.cost_usd)
            if job.waiting_for not in (None, told):
                progress.tell(f"The job waits for {job.waiting_for}.")
            told = job.waiting_for
            sleep(look_s)
            look_s = min(LAST_LOOK_S, GROWTH * look_s)
            try:
                job = server.get(job.id)
            except Unanswered:
                if clock() > patient_until:
                    raise
            else:
                patient_until = clock() + PATIENCE_S
    finally:
        progress.end()
    return job


def wait(server: JobServer, job: Job, output: str | None, restart: bool, url: str) -> None:
    """Follow a job to its end, write its results, and exit with a status that tells of them."""
    try:
        notice(job.id)
        if output is not None:
            check_output(output, restart, job.id)
        job = follow(server, job)
        if output is not None:
            fetch(server, job.id, output, restart)
    except KeyboardInterrupt:
        notice("The job goes on without this command.")
        tell_next(job, url)
        raise
    notice(summary(job))
    if output is None:
        tell_next(job, url)
    end(job)


def hand_in(server: JobServer, body: bytes, output: str | None, restart: bool) -> Job:
    """Hand in a job, unless its results cannot go to `output`, and say so. Raises `SvcError`."""
    if output is not None:
        check_output(output, restart)
    handed = server.submit(body)
    notice(handed_in(handed.job, handed.before))
    return handed.job


def tell_next(job: Job, url: str) -> None:
    """Say what can be typed next."""
    for line in next_lines(job, url):
        notice(line)
