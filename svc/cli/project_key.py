"""`svc project-key`: a project's own key for the aggregator."""

from __future__ import annotations

import os
import sys

import click

from svc.cli import database
from svc.cli.groups import Suggesting
from svc.errors import SettingsError
from svc.names import normal_form
from svc.store import MASTER_KEY, ProjectKeys

# The most characters of a key.
KEY_CHARS = 4_096


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
    """The key: typed on a terminal without being shown, or the content of a pipe."""
    if sys.stdin is None:
        # The starting process closed it.
        text = ""
    elif sys.stdin.isatty():
        text = str(click.prompt("Aggregator key", hide_input=True, err=True))
    else:
        # The longest key, and the line break that it may end with.
        text = sys.stdin.buffer.read(KEY_CHARS + 2).decode("ascii", "replace")
    key = text.strip()
    if not 0 < len(key) <= KEY_CHARS or not all("!" <= char <= "~" for char in key):
        raise SettingsError(
            f"standard input has no key; allowed: one line of 1 to {KEY_CHARS:,} visible ASCII "
            "characters"
        )
    return key
