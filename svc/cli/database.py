"""What commands that work on the database share: its option, and the check of names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from svc import limits
from svc.errors import SettingsError
from svc.names import UnsoundName, project_name
from svc.settings import Settings
from svc.store import Database

option = click.option(
    "--db",
    metavar="DB",
    envvar="SVC_DB",
    default=Settings().db,
    help=f"Database file.  [default: SVC_DB, or {Settings().db}]",
)


@contextmanager
def opened(path: str, create: bool = False) -> Iterator[Database]:
    """The database, closed after the block.

    Raises `SettingsError` for any other file, and unless `create` where there is no file.
    """
    # The one line of the error says what is wrong; the log need not repeat it.
    logging.getLogger("svc").addHandler(logging.NullHandler())
    if not create and not Path(path).exists():
        raise SettingsError(f"database {path!r}: there is no such file; see --db")
    database = Database.open(path)
    try:
        yield database
    finally:
        database.close()


def checked_project(what: str, name: str) -> str:
    """The project's name in the form in which it is stored. Raises `SettingsError`."""
    check_name(what, name)
    try:
        return project_name(name)
    except UnsoundName as error:
        raise SettingsError(f"{what} {error}; it is {name[:100]!r}") from None


def check_name(what: str, name: str) -> None:
    """Raise `SettingsError` unless `name` can stand in a line of a table, and in a request."""
    if not name.isprintable() or name != name.strip() or not 1 <= len(name) <= limits.PROJECT_CHARS:
        raise SettingsError(
            f"{what} is {name[:100]!r}; allowed: 1 to {limits.PROJECT_CHARS} printable "
            "characters, without blanks at the ends"
        )
