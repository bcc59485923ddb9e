"""`svc batch results`: what became of the rows of a job, in a file."""

from __future__ import annotations

from contextlib import closing

import click

from svc.batch import check_rows, open_rows
from svc.cli.job_options import output_option, restart_option
from svc.cli.job_text import summary
from svc.cli.jobs import Job, JobServer, check_id
from svc.cli.notices import FAILED, notice
from svc.cli.remote import Remote, address_options
from svc.errors import SvcError

_RUN = {"command": "batch results"}


@click.command("results", epilog="Example: svc batch results JOB -o answers.jsonl")
@click.argument("job_id", metavar="JOB")
@output_option(default="-", help="Result lines; by default - for standard output.")
@restart_option
@address_options
def results(job_id: str, output: str, restart: bool, remote: Remote) -> None:
    """Write what became of the rows of JOB, as JSON lines in their order.

    \b
      {"row": 1, "id": "t-1", "decision": {"id": "dec_...", "answers": {...}}}
      {"row": 2, "id": "t-2", "error": {"type": "model_error", "message": "..."}}

    Of a job that runs these are the rows so far; the same command continues behind the last line of
    FILE. It refuses results of another job, which FILE.run.json records. The exit status is 0 when
    every row has an answer, and 1 when not.
    """
    check_id(job_id)
    with closing(JobServer(remote)) as server:
        # Before the file is made, in case there is no such job.
        server.get(job_id)
        rows = fetch(server, job_id, output, restart)
        job = server.get(job_id)
    if job.is_whole and rows != job.rows:
        raise SvcError(f"{rows:,} of {job.rows:,} rows came; the same command fetches the others")
    notice(summary(job))
    if job.is_open:
        notice("The job goes on; the same command continues from there.")
    end(job)


def check_output(path: str, restart: bool, job_id: str | None = None) -> None:
    """Raise `SettingsError` where the results of a job, which may be one to come, cannot go."""
    check_rows(path, _RUN if job_id is None else {**_RUN, "job": job_id}, restart)


def fetch(server: JobServer, job_id: str, path: str, restart: bool) -> int:
    """Write the results of a job, behind those that the file has already; the number of both.

    Raises `SvcError`.
    """
    with closing(open_rows(path, {**_RUN, "job": job_id}, restart)) as output:
        rows = output.lines
        for page in server.results(job_id, rows):
            output.write(page.encode())
            rows += page.count("\n")
    return rows


def end(job: Job) -> None:
    """Exit with a status that tells whether every row was answered."""
    if not job.is_whole:
        raise click.exceptions.Exit(FAILED)
