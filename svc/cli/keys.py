"""`svc keys`: who may use the server."""

from __future__ import annotations

from dataclasses import asdict

import click

from svc import limits
from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.notices import notice
from svc.cli.tables import echo_json, json_option, moment, table
from svc.errors import SettingsError
from svc.phrases import reason
from svc.store import PREFIX, ApiKey, ApiKeys

_HEAD = ("id", "name", "rpm", "at once", "project", "created", "state")
# The places of the columns that hold words.
_TEXT = {0, 1, 4, 5, 6}
# Stands in the column of the project for a key that works for all of them.
_EVERY = "-"
# Stands in the column of requests at the same time for a key that has the default.
_DEFAULT = "-"


EXAMPLES = """\b
Examples:
  svc keys create --name shop --rpm 1200 --project returns
  svc keys list
  svc keys revoke ID
"""


@click.group("keys", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Make, list and revoke API keys.

    Once there is a key, even a revoked one, every request needs one. Changes apply to a running
    server at once.
    """


@command.command("create", epilog="Example: svc keys create --name shop --project returns")
@click.option("--name", required=True, metavar="WHO", help="Whom the key is for.")
@click.option(
    "--rpm",
    type=int,
    default=limits.KEY_RPM,
    show_default=True,
    metavar="N",
    help="Requests a minute.",
)
@click.option(
    "--concurrency",
    type=int,
    metavar="N",
    help="Requests at the same time; by default a quarter of the server's threads.",
)
@click.option("--project", metavar="P", help="The only project that the key is for.")
@database.option
def create(name: str, rpm: int, concurrency: int | None, project: str | None, db: str) -> None:
    """Make a key and print it, which is possible only now."""
    database.check_name("--name", name)
    if project is not None:
        project = database.checked_project("--project", project)
    _check("--rpm", rpm, limits.RPM)
    if concurrency is not None:
        _check("--concurrency", concurrency, limits.CONCURRENCY)
    with database.opened(db, create=True) as opened:
        keys = ApiKeys(opened)
        key = keys.create(name, rpm, project, concurrency)
        if key is None:
            raise SettingsError(
                f"--name {name!r} is taken, perhaps by a revoked key; "
                "`svc keys list` shows all names"
            )
        try:
            click.echo(f"id:  {key.id}\nkey: {key.text}")
        except OSError as error:
            keys.revoke(key.id)
            raise SettingsError(
                f"the key could not be printed ({reason(error)}), so it is revoked: "
                f"{name!r} needs another --name now"
            ) from None
    notice("Save the key now: it is not shown again.")


@command.command("list", epilog="Example: svc keys list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of all keys, without the keys themselves."""
    with database.opened(db) as opened:
        keys = ApiKeys(opened).all()
    if as_json:
        echo_json([asdict(key) for key in keys])
        return
    click.echo("\n".join(table(_HEAD, [_row(key) for key in keys], _TEXT)))


@command.command("revoke", epilog="Example: svc keys revoke ID, as `svc keys list` shows it")
@click.argument("key_id", metavar="ID")
@database.option
def revoke(key_id: str, db: str) -> None:
    """Refuse a key from now on; this cannot be undone."""
    if key_id.strip().startswith(PREFIX):
        raise SettingsError("this is a key, not its id; `svc keys list` shows the ids")
    with database.opened(db) as opened:
        known = ApiKeys(opened).revoke(key_id)
    if not known:
        raise SettingsError(f"there is no key with the id {key_id[:100]!r}; see `svc keys list`")
    click.echo(f"{key_id} is revoked")


def _check(option: str, number: int, allowed: tuple[int, int]) -> None:
    low, high = allowed
    if not low <= number <= high:
        raise SettingsError(f"{option} is {number}; allowed: a whole number from {low} to {high}")


def _row(key: ApiKey) -> tuple[str, ...]:
    state = "active" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
    project = _EVERY if key.project is None else key.project
    at_once = _DEFAULT if key.concurrency is None else str(key.concurrency)
    return key.id, key.name, str(key.rpm), at_once, project, moment(key.created_at), state
