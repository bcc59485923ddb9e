"""Names that callers choose, of which only so many count by themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

# The names that a place has, such as a day of a project, of so many characters at most, and what
# counts all others.
KEPT_NAMES = 1_000
NAME_CHARS = 320
OTHERS = "(others)"

# How many of the names that are known to be there a process remembers, about 100 bytes each, and of
# how many places how much room they have.
REMEMBERED = 30_000

# How many names a process adds to a place before it counts them again, as other processes add some
# too. To count a thousand long names takes milliseconds, in which nothing else is written.
UNCOUNTED = 100


class Names:
    """Says under which names decisions count; the writer's thread alone uses it."""

    def __init__(self, known: str, how_many: str) -> None:
        """`known` selects those of a place that are in a JSON array, and `how_many` counts all."""
        self._known_names, self._how_many = known, how_many
        # Hashes of rows: callers choose the names, which may be long.
        self._known: set[int] = set()
        # By the hash of a place, how many names it gets before they are counted again; 0 where it
        # is full, which it stays.
        self._room: dict[int, int] = {}

    def of(
        self, connection: sqlite3.Connection, place: tuple[Any, ...], wanted: Iterable[str]
    ) -> list[str]:
        """For each wanted name itself, or `OTHERS` where its place has no room for it."""
        rows = [(*place, name) for name in wanted]
        new = [row for row in rows if hash(row) not in self._known]
        if new:
            # Where a transaction is undone, its names stay known: a place may have a few more then.
            self._known.update(map(hash, self._with_room(connection, place, new)))
        names = [row[-1] if hash(row) in self._known else OTHERS for row in rows]
        if len(self._known) + len(self._room) > REMEMBERED:
            self._known.clear()
            self._room.clear()
        return names

    def _with_room(
        self,
        connection: sqlite3.Connection,
        place: tuple[Any, ...],
        rows: Sequence[tuple[Any, ...]],
    ) -> list[tuple[Any, ...]]:
        """Those rows that are there, and as many of the others as there is room for."""
        wanted = json.dumps([row[-1] for row in rows])
        there = {row[0] for row in connection.execute(self._known_names, (*place, wanted))}
        new = [row for row in rows if row[-1] not in there]
        taken = self._taken(connection, place, len(new)) if new else 0
        return [row for row in rows if row[-1] in there] + new[:taken]

    def _taken(self, connection: sqlite3.Connection, place: tuple[Any, ...], wanted: int) -> int:
        """For how many of so many new names the place has room."""
        room = self._room.pop(hash(place), None)
        if room is None or 0 < room < wanted:
            (count,) = connection.execute(self._how_many, place).fetchone()
            room = max(0, KEPT_NAMES - count)
        taken = min(room, wanted)
        if taken < room or not room:
            self._room[hash(place)] = min(room - taken, UNCOUNTED)
        return taken
