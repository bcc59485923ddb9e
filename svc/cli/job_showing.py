"""`svc batch status`, `cancel` and `list`: how jobs of a running server stand."""

from __future__ import annotations

from contextlib import closing

import click

from svc import limits
from svc.cli.job_text import list_lines, status_lines
from svc.cli.jobs import PATH, JobServer, check_id, jobs_of
from svc.cli.notices import notice
from svc.cli.remote import Remote, address_options, remote_options
from svc.cli.tables import echo_lines, json_option


@click.command("status", epilog="Example: svc batch status JOB, as `svc batch list` shows it")
@click.argument("job_id", metavar="JOB")
@json_option
@address_options
def status(job_id: str, as_json: bool, remote: Remote) -> None:
    """Show how far JOB is, what it has cost, and when it may end.

    --json prints what GET /v1/batch/{id} answers.
    """
    check_id(job_id)
    with closing(JobServer(remote)) as server:
        if as_json:
            echo_lines(server.shown(job_id).text)
        else:
            click.echo("\n".join(status_lines(server.get(job_id))))


@click.command("cancel", epilog="Example: svc batch cancel JOB")
@click.argument("job_id", metavar="JOB")
@address_options
def cancel(job_id: str, remote: Remote) -> None:
    """Have no further row of JOB asked.

    Rows under way are finished, and all answers so far stay. A job that has ended stays as it is.
    """
    check_id(job_id)
    with closing(JobServer(remote)) as server:
        job = server.cancel(job_id)
    click.echo("\n".join(status_lines(job)))


@click.command("list", epilog="Example: svc batch list --project support")
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
        check_id(before)
    page = remote.get(PATH, {"limit": limit, "before": before})
    if as_json:
        echo_lines(page.text)
        return
    jobs = jobs_of(page.value)
    click.echo("\n".join(list_lines(jobs)))
    if page.value.get("next_before"):
        notice(f"--before {jobs[-1].id} shows older ones.")
