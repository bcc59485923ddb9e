"""`svc hook`: where projects are told of what happens to them."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from svc import hooks
from svc.cli import database
from svc.cli.groups import Suggesting
from svc.cli.notices import notice
from svc.cli.secret_input import read_secret
from svc.cli.tables import echo_json, json_option, moment, table
from svc.errors import SettingsError
from svc.store import MASTER_KEY, Hook, HookKind, Hooks, OpenedHook, TooManyHooks

_HEAD = ("id", "project", "url", "waiting", "given up", "delivered", "state", "events")
# The places of the columns that hold words.
_TEXT = {0, 1, 2, 5, 6, 7}
_NEVER = "-"

EXAMPLES = """\b
Examples:
  svc hook add https://example.com/svc --project shop
  svc hook add https://example.com/svc --project shop --event drift --event promise.broken
  svc hook add - --project shop < url.txt
  svc hook list
  svc hook enable ID
  svc hook remove ID
"""


@click.group("hook", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Have a URL told of what happens to a project.

    Events are sent by a running server, signed, in order, and again until they are taken. URL and
    secret are encrypted with the secret in SVC_MASTER_KEY, with which the server must be started as
    well.
    """


@command.command("add", epilog="Example: svc hook add https://example.com/svc --project shop")
@click.argument("url")
@click.option("--project", metavar="P", required=True, help="The project.")
@click.option(
    "--event",
    "kinds",
    type=click.Choice([kind.value for kind in HookKind]),
    multiple=True,
    help="What is told; may be given several times.  [default: everything]",
)
@click.option(
    "--allow-private",
    is_flag=True,
    help="Allow this hook to lead to this machine and to private addresses.",
)
@database.option
def add(url: str, project: str, kinds: tuple[str, ...], allow_private: bool, db: str) -> None:
    """Add a hook and print the secret that signs, which is possible only now.

    With - as URL it is read from standard input: other users of this machine see the arguments of a
    command in its list of processes.
    """
    project = database.checked_project("--project", project)
    url = _read_url() if url == "-" else url
    try:
        target = hooks.parsed(url)
        if not allow_private:
            hooks.addresses(target, allow_private)
    except hooks.RefusedTarget as error:
        raise SettingsError(error.message) from None
    wanted = {HookKind(kind) for kind in kinds} or set(HookKind)
    opened_hook = OpenedHook(url, hooks.new_secret(), allow_private)
    with database.opened(db, create=True) as opened:
        stored = Hooks(opened, os.environ.get(MASTER_KEY) or None)
        try:
            hook_id = stored.add(project, wanted, target.place, opened_hook)
        except TooManyHooks as error:
            raise SettingsError(f"{error.message}; `svc hook list` shows them") from None
    click.echo(f"id:     {hook_id}\nsecret: {opened_hook.secret}")
    notice("Save the secret now: it is not shown again.")
    if target.readable:
        notice("Over http:// everybody on the way can read what is sent; they cannot change it.")


@command.command("list", epilog="Example: svc hook list --db svc.db")
@json_option
@database.option
def show(as_json: bool, db: str) -> None:
    """Print a table of all hooks, without their secrets and paths."""
    with database.opened(db) as opened:
        found = Hooks(opened).all()
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    click.echo("\n".join(table(_HEAD, [_row(one) for one in found], _TEXT)))


@command.command("enable", epilog="Example: svc hook enable ID, as `svc hook list` shows it")
@click.argument("hook_id", metavar="ID")
@database.option
def enable(hook_id: str, db: str) -> None:
    """Enable a hook that is disabled, and send at once what waits for it."""
    with database.opened(db) as opened:
        _require(Hooks(opened).enable(hook_id), hook_id)
    click.echo(f"{hook_id} is enabled")


@command.command("remove", epilog="Example: svc hook remove ID, as `svc hook list` shows it")
@click.argument("hook_id", metavar="ID")
@database.option
def remove(hook_id: str, db: str) -> None:
    """Remove a hook, and what still waits for it."""
    with database.opened(db) as opened:
        _require(Hooks(opened).remove(hook_id), hook_id)
    click.echo(f"{hook_id} is removed")


def _read_url() -> str:
    url = read_secret("URL")
    if not url:
        raise SettingsError("standard input has no URL")
    return url


def _require(known: bool, hook_id: str) -> None:
    if not known:
        raise SettingsError(f"there is no hook with the id {hook_id[:100]!r}; see `svc hook list`")


def _row(hook: Hook) -> tuple[str, ...]:
    delivered = _NEVER if hook.delivered_at is None else moment(hook.delivered_at)
    events = "all" if len(hook.kinds) == len(HookKind) else ", ".join(hook.kinds)
    counts = (f"{hook.waiting:,}", f"{hook.given_up:,}")
    return (hook.id, hook.project, f"{hook.place}/…", *counts, delivered, _state(hook), events)


def _state(hook: Hook) -> str:
    if hook.disabled is not None:
        return f"disabled: {hook.disabled}; `svc hook enable` sends again"
    if hook.failing_since is not None:
        return f"failing since {moment(hook.failing_since)}: {hook.failure}"
    return "active"
