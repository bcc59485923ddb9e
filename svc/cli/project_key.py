"""`svc project-key`: a project's own key for the aggregator."""

from __future__ import annotations

import os

import click

from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.secret_input import SECRET_CHARS, read_secret
from svc.errors import SettingsError
from svc.names import normal_form
from svc.store import MASTER_KEY, ProjectKeys

EXAMPLES = """\b
Examples:
  export SVC_MASTER_KEY="$(openssl rand -hex 32)"
  svc project-key set returns < key.txt
  svc project-key remove returns
"""


@click.group("project-key", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Set and remove the projects' own aggregator keys.

    They are encrypted with the secret in SVC_MASTER_KEY, with which the server must be started as
    well. Changes apply to a running server at once.
    """


@command.command("set", epilog="Example: svc project-key set returns < key.txt")
@click.argument("project")
@database.option
def set_key(project: str, db: str) -> None:
    """Read the key from standard input and keep it for PROJECT."""
    project = database.checked_project("the project", project)
    with database.opened(db, create=True) as opened:
        keys = ProjectKeys(opened, os.environ.get(MASTER_KEY) or None)
        keys.require_master_key()
        keys.set(project, _read_key())
    click.echo(f"the aggregator key of project {project!r} is set")


@command.command("remove", epilog="Example: svc project-key remove returns")
@click.argument("project")
@database.option
def remove(project: str, db: str) -> None:
    """Remove the key of PROJECT; its requests use the server's own key again."""
    with database.opened(db) as opened:
        keys = ProjectKeys(opened, None)
        # A name of before, when any was allowed, stays as it was written.
        known = keys.remove(project) or keys.remove(normal_form(project))
    if not known:
        raise SettingsError(f"project {project[:100]!r} has no aggregator key")
    click.echo(f"the aggregator key of project {project!r} is removed")


def _read_key() -> str:
    key = read_secret("Aggregator key")
    if not 0 < len(key) <= SECRET_CHARS or not all("!" <= char <= "~" for char in key):
        raise SettingsError(
            f"standard input has no key; allowed: one line of 1 to {SECRET_CHARS:,} visible ASCII "
            "characters"
        )
    return key
