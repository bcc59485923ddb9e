"""`svc retention`: for how long decisions of projects are kept."""

from __future__ import annotations

from dataclasses import asdict

import click

from svc import limits
from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.tables import echo_json, json_option, table
from svc.errors import SettingsError
from svc.names import normal_form
from svc.store import Retentions

_HEAD = ("project", "days")
# The places of the columns that hold words.
_TEXT = {0}

EXAMPLES = """\b
Examples:
  svc retention set --project shop --days 90
  svc retention list
  svc retention remove --project shop
"""

_project = click.option("--project", metavar="P", required=True, help="The project.")


@click.group("retention", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Say for how long decisions of projects are kept.

    By default they are kept for ever. A running server deletes older ones within a minute, with
    their labels and all else that hangs on them. Sums over time and calibrators stay. Without a
    server nothing is deleted.
    """


@command.command("set", epilog="Example: svc retention set --project shop --days 90")
@_project
@click.option(
    "--days",
    type=int,
    required=True,
    metavar="N",
    help="Days after which its decisions are deleted.",
)
@database.option
def set_days(project: str, days: int, db: str) -> None:
    """Delete decisions of a project N days after they were made."""
    project = database.checked_project("--project", project)
    first, last = limits.RETENTION_DAYS
    if not first <= days <= last:
        raise SettingsError(
            f"--days is {days}; allowed: a whole number from {first} to {last:,}, and "
            "`svc retention remove` keeps decisions for ever"
        )
    with database.opened(db, create=True) as opened:
        Retentions(opened).set(project, days)
    word = "day" if days == 1 else "days"
    click.echo(f"decisions of project {project!r} are deleted after {days} {word}")


@command.command("list", epilog="Example: svc retention list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of the projects whose decisions are deleted."""
    with database.opened(db) as opened:
        found = Retentions(opened).all()
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    rows = [(one.project, f"{one.days:,}") for one in found]
    click.echo("\n".join(table(_HEAD, rows, _TEXT)))


@command.command("remove", epilog="Example: svc retention remove --project shop")
@_project
@database.option
def remove(project: str, db: str) -> None:
    """Keep the decisions of a project for ever again."""
    with database.opened(db) as opened:
        known = Retentions(opened).remove(normal_form(project))
    if not known:
        raise SettingsError(f"project {project[:100]!r} has no retention; see `svc retention list`")
    click.echo(f"decisions of project {project!r} are kept for ever")
