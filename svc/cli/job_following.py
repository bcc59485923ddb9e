"""A job of a running server that is followed to its end, and its results in a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing

from svc.batch import Output, Progress, duration, open_rows
from svc.cli.asking import Unanswered
from svc.cli.job_text import settled_text
from svc.cli.jobs import Job, JobServer
from svc.cli.notices import notice
from svc.cli.server_lines import PATIENCE_S
from svc.cli.tables import dollars

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


def fetch(server: JobServer, job_id: str, path: str, restart: bool) -> None:
    """Write the results of a job, behind those that the file has already. Raises `SvcError`."""
    run = {"command": "batch results", "job": job_id}
    with closing(open_rows(path, run, restart)) as output:
        _write(server, job_id, output)


def _write(server: JobServer, job_id: str, output: Output) -> None:
    for page in server.results(job_id, output.lines):
        output.write(page.encode())


def summarise(job: Job) -> None:
    """Say what became of a job in one line on standard error."""
    took = "" if job.ended_at is None else f", {duration((job.ended_at - job.created_at) / 1000)}"
    why = f" ({job.reason})" if job.reason else ""
    notice(f"{job.status}{why}: {settled_text(job, ' rows')}, {dollars(job.cost_usd)}{took}")
