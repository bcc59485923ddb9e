"""`svc batch`: jobs of many rows on a running server, handed in now and fetched later."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import click

from svc import limits
from svc.batch import Form, open_input
from svc.cli.batch_options import input_options, limit_option, questions_option
from svc.cli.completing import file_names
from svc.cli.groups import Suggesting
from svc.cli.job_body import JobBody, job_body
from svc.cli.job_following import fetch, follow, summarise
from svc.cli.job_text import list_lines, status_lines
from svc.cli.jobs import PATH, Job, JobServer, jobs_of
from svc.cli.notices import FAILED, notice
from svc.cli.plans import plan_options
from svc.cli.question_files import read_named
from svc.cli.remote import Remote, address_options, remote_options
from svc.cli.server import URL
from svc.cli.tables import json_option
from svc.errors import SettingsError
from svc.schemas import load_decision

EXAMPLES = """\b
Examples:
  svc batch submit -q support-triage --ref-column id tickets.csv
  svc batch status JOB
  svc batch results JOB -o answers.jsonl
"""

_JOB = re.compile(r"job_[0-9a-f]{24}")

_output_option = partial(
    click.option,
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=file_names,
)
_restart_option = click.option(
    "--restart", is_flag=True, help="Start again and overwrite the output."
)


@click.group("batch", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Hand a file to a running server, and fetch the answers later.

    The server asks its models about each row, also while nobody is connected, and after it was
    started again. Each row becomes a decision, as svc map --url makes it, which gives way to other
    requests. The server needs SVC_MASTER_KEY, with which rows that wait are encrypted.
    """


SUBMIT = """\b
Examples:
  svc batch submit -q support-triage --column body --ref-column id tickets.csv
  svc batch submit -q questions.json --wait -o answers.jsonl tickets.jsonl
  job=$(svc batch submit -q questions.json tickets.jsonl)
"""


@command.command("submit", epilog=SUBMIT)
@questions_option
@click.option("--wait", is_flag=True, help="Show the progress until the job has ended.")
@_output_option(help="With --wait: the results; - for standard output.")
@_restart_option
@click.option(
    "--expires-after",
    type=click.IntRange(*limits.JOB_HOURS),
    default=limits.JOB_HOURS_DEFAULT,
    show_default=True,
    metavar="HOURS",
    help="Ask no further row after so many hours.",
)
@limit_option
@input_options
@plan_options
@remote_options
def submit(
    questions: str,
    wait: bool,
    output: str | None,
    restart: bool,
    expires_after: int,
    limit: int | None,
    source: str,
    form: Form,
    fields: Mapping[str, Any],
    remote: Remote,
) -> None:
    """Hand in a job: the same questions about every line of INPUT.

    INPUT is what svc map reads: JSON lines, a table named .csv or .tsv, or lines of text in a file
    named .txt; - reads standard input. It has at most 100,000 lines. What --ref-column names is the
    id of a row, else this is the number of its line; no two rows may have the same id. A job is
    taken whole: where a line cannot be asked about, nothing is sent.

    Prints the id of the job. The same command within 24 hours finds the same job, so that it can be
    repeated when no answer came; where that job was cancelled, expired or failed, it makes another.

    With --wait the exit status is 0 when every row was answered, and 1 when not. Ctrl-C ends the
    command, not the job.
    """
    if not wait and (output or restart):
        raise click.UsageError("-o and --restart go with --wait only.")
    if restart and not output:
        raise click.UsageError("--restart goes with -o only.")
    of_project = {} if remote.project is None else {"project": remote.project}
    shared = {"questions": read_named(questions).fields, **fields, **of_project}
    load_decision({**shared, "state": {}})
    with closing(open_input(source, form)) as opened:
        body = job_body({**shared, "expires_after_hours": expires_after}, opened, limit)
    with _asked(remote) as server:
        handed = server.submit(body.data)
        _tell(body, handed.job, handed.before)
        if not wait:
            click.echo(handed.job.id)
            _tell_next(handed.job, remote)
            return
        _wait(server, handed.job, output, restart, remote)


@command.command("status", epilog="Example: svc batch status JOB, as `svc batch list` shows it")
@click.argument("job_id", metavar="JOB")
@json_option
@address_options
def status(job_id: str, as_json: bool, remote: Remote) -> None:
    """Show how far JOB is, what it has cost, and when it may end.

    --json prints what GET /v1/batch/{id} answers.
    """
    _check(job_id)
    with _asked(remote) as server:
        if as_json:
            click.echo(server.shown(job_id).text)
        else:
            click.echo("\n".join(status_lines(server.get(job_id))))


@command.command("results", epilog="Example: svc batch results JOB -o answers.jsonl")
@click.argument("job_id", metavar="JOB")
@_output_option(default="-", help="Result lines; by default - for standard output.")
@_restart_option
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
    _check(job_id)
    with _asked(remote) as server:
        # Before the file is made, in case there is no such job.
        server.get(job_id)
        fetch(server, job_id, output, restart)
        job = server.get(job_id)
    summarise(job)
    if job.is_open:
        notice("The job goes on; the same command continues from there.")
    _end(job)


@command.command("cancel", epilog="Example: svc batch cancel JOB")
@click.argument("job_id", metavar="JOB")
@address_options
def cancel(job_id: str, remote: Remote) -> None:
    """Have no further row of JOB asked.

    Rows under way are finished, and all answers so far stay. A job that has ended stays as it is.
    """
    _check(job_id)
    with _asked(remote) as server:
        job = server.cancel(job_id)
    click.echo("\n".join(status_lines(job)))


@command.command("list", epilog="Example: svc batch list --project support")
@click.option(
    "--limit",
    type=click.IntRange(*limits.JOBS_PAGE),
    default=limits.JOBS_PAGE_DEFAULT,
    show_default=True,
    metavar="N",
    help="How many jobs.",
)
@click.option("--before", metavar="JOB", help="Those before this job.")
@json_option
@remote_options
def show(limit: int, before: str | None, as_json: bool, remote: Remote) -> None:
    """Print a table of the jobs of a project, the newest first."""
    if before is not None:
        _check(before)
    page = remote.get(PATH, {"limit": limit, "before": before})
    if as_json:
        click.echo(page.text)
        return
    jobs = jobs_of(page.value)
    click.echo("\n".join(list_lines(jobs)))
    if page.value.get("next_before"):
        notice(f"--before {jobs[-1].id} shows older ones.")


@contextmanager
def _asked(remote: Remote) -> Iterator[JobServer]:
    with closing(JobServer(remote)) as server:
        yield server


def _check(job_id: str) -> None:
    """Raise `SettingsError` for what is no id of a job."""
    if not _JOB.fullmatch(job_id):
        raise SettingsError(
            f"{job_id[:100]!r} is no id of a job, such as job_ and 24 hexadecimal digits; "
            "`svc batch list` shows them"
        )


def _tell(body: JobBody, job: Job, before: bool) -> None:
    if before:
        notice(f"This job was handed in before, and is {job.status}; nothing is asked twice.")
    else:
        notice(f"{body.rows:,} rows were handed in.")


def _tell_next(job: Job, remote: Remote) -> None:
    """Say what can be typed next, of the server that was asked."""
    there = "" if remote.url == URL else f" --url {remote.url}"
    notice(f"svc batch status {job.id}{there} shows how far it is,")
    notice(f"svc batch results {job.id} -o FILE{there} writes its answers.")


def _wait(server: JobServer, job: Job, output: str | None, restart: bool, remote: Remote) -> None:
    try:
        notice(job.id)
        job = follow(server, job)
        if output is not None:
            fetch(server, job.id, output, restart)
    except KeyboardInterrupt:
        notice("The job goes on without this command.")
        _tell_next(job, remote)
        raise
    summarise(job)
    if output is None:
        _tell_next(job, remote)
    _end(job)


def _end(job: Job) -> None:
    """Exit with a status that tells whether every row was answered."""
    if not job.is_whole:
        raise click.exceptions.Exit(FAILED)
