"""`svc project`: what projects may store."""

from __future__ import annotations

from dataclasses import asdict

import click

from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.tables import echo_json, json_option, table
from svc.errors import SettingsError
from svc.store import ProjectSizes

# The largest limit, a petabyte.
MOST_BYTES = 10**15

_HEAD = ("project", "bytes", "max bytes")
# The places of the columns that hold words.
_TEXT = {0}

EXAMPLES = """\b
Examples:
  svc project set shop --max-bytes 10000000000
  svc project list
"""


@click.group("project", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Bound what the decisions of a project fill in the database.

    Changes apply to a running server within a second. A project that is full gets 422.
    """


@command.command("set", epilog="Example: svc project set shop --max-bytes 10000000000")
@click.argument("project")
@click.option(
    "--max-bytes",
    type=int,
    required=True,
    metavar="N",
    help="Bytes that its decisions may fill; 0 for no limit.",
)
@database.option
def set_size(project: str, max_bytes: int, db: str) -> None:
    """Set the limit of PROJECT."""
    database.check_name("the project", project)
    if not 0 <= max_bytes <= MOST_BYTES:
        raise SettingsError(
            f"--max-bytes is {max_bytes}; allowed: a whole number from 0 to {MOST_BYTES:,}"
        )
    with database.opened(db, create=True) as opened:
        ProjectSizes(opened).set(project, max_bytes or None)
    limit = f"at most {max_bytes:,} bytes" if max_bytes else "as much as fits on the disk"
    click.echo(f"the decisions of project {project!r} may fill {limit}")


@command.command("list", epilog="Example: svc project list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of the projects that have a limit."""
    with database.opened(db) as opened:
        sizes = ProjectSizes(opened).all()
    if as_json:
        echo_json([asdict(one) for one in sizes])
        return
    rows = [(one.project, f"{one.bytes:,}", f"{one.max_bytes:,}") for one in sizes]
    click.echo("\n".join(table(_HEAD, rows, _TEXT)))
