"""What remembered answers belong to: one of another era is not given again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from svc.store.database import Database
from svc.store.remembered import KEPT_S

# For how long a process may go on with the era of before, and a little more.
REMEMBERED_S = KEPT_S + 0.2

DAY_S = 86_400

_OF = (
    "SELECT (SELECT value FROM meta WHERE name = 'forgotten') AS forgotten, "
    "(SELECT days FROM retention WHERE project = ?) AS days"
)
_NEXT = (
    "INSERT INTO meta (name, value) VALUES ('forgotten', 1) "
    "ON CONFLICT (name) DO UPDATE SET value = value + 1"
)


class Eras:
    """Tells the era of a project.

    One ends where something is forgotten, and in projects that keep decisions for some days after
    as many: so no answer is remembered for longer than its decision.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock

    def of(self, project: str) -> str:
        """The era, equal as long as answers may be given again. Raises `StorageError`."""
        ((forgotten, days),) = self._database.remembered_rows(_OF, project)
        part = "" if days is None else int(self._clock() / (days * DAY_S))
        return f"{forgotten} {part}"


def begin(connection: sqlite3.Connection) -> None:
    """Begin another era of all projects, inside of `Database.changing`."""
    connection.execute(_NEXT)
