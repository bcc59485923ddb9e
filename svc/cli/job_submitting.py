"""`svc batch submit`: a file that is handed to a running server as a job."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import click

from svc.batch import Form
from svc.cli import job_following, job_forecast
from svc.cli.batch_options import (
    dry_run_option,
    input_options,
    limit_option,
    questions_option,
)
from svc.cli.job_body import body_of_input, check_apart
from svc.cli.job_options import (
    budget_option,
    expires_option,
    output_option,
    provider_batch_option,
    restart_option,
)
from svc.cli.jobs import JobServer
from svc.cli.plans import plan_options
from svc.cli.remote import Remote, remote_options

SUBMIT = """\b
Examples:
  svc batch submit -q support-triage --column body --ref-column id tickets.csv
  svc batch submit -q questions.json --wait -o answers.jsonl tickets.jsonl
  job=$(svc batch submit -q questions.json tickets.jsonl)
"""


@click.command("submit", epilog=SUBMIT)
@questions_option
@click.option("--wait", is_flag=True, help="Show the progress until the job has ended.")
@output_option(help="With --wait: the results; - for standard output.")
@restart_option
@expires_option
@provider_batch_option
@budget_option
@limit_option
@dry_run_option
@input_options
@plan_options
@remote_options
def submit(
    questions: str,
    wait: bool,
    output: str | None,
    restart: bool,
    expires_after: int,
    batch: str | None,
    budget_usd: float | None,
    limit: int | None,
    dry_run: bool,
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

    With --provider-batch the server sends what it asks to the providers of the models as batches,
    where these have a Batch API. Each round of calls may take a day: --expires-after 72 leaves room
    for three.

    Prints the id of the job. The same command within 24 hours finds the same job, so that it can be
    repeated when no answer came; where that job was cancelled, expired or failed, it makes another.

    With --dry-run nothing is handed in: the server says what the job may take, by 100 of its rows.

    With --wait the exit status is 0 when every row was answered, and 1 when not. Ctrl-C ends the
    command, not the job.
    """
    if not wait and (output or restart):
        raise click.UsageError("-o and --restart go with --wait only.")
    if restart and not output:
        raise click.UsageError("--restart goes with -o only.")
    of_project = {} if remote.project is None else {"project": remote.project}
    own = {"batch": batch, "budget_usd": budget_usd, "expires_after_hours": expires_after}
    of_job = {name: value for name, value in own.items() if value is not None}
    given = {**fields, **of_project, **of_job}
    if output:
        check_apart(output, questions, source)
    body = body_of_input(questions, given, source, form, limit)
    if dry_run:
        click.echo("\n".join(job_forecast.lines(body, remote)))
        return
    with closing(JobServer(remote)) as server:
        job = job_following.hand_in(server, body, output, restart)
        if wait:
            job_following.wait(server, job, output, restart, remote.url)
            return
        click.echo(job.id)
        job_following.tell_next(job, remote.url)
