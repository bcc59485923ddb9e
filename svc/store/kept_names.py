"""Names that callers choose, of which only so many count by themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from svc.store.rows import find

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


# A place, and a row of it: the place with one of its names.
_Place = tuple[Any, ...]
_Row = tuple[Any, ...]


class Names:
    """Says under which names decisions count; the writer's thread alone uses it."""

    def __init__(self, known: str, how_many: str) -> None:
        """Both are as `rows.find` takes them.

        `known` selects the numbers of those rows that are there, of a place and a name each, and
        `how_many` for each number how many names its place has.
        """
        self._known_names, self._how_many = known, how_many
        # Hashes of rows: callers choose the names, which may be long.
        self._known: set[int] = set()
        # By the hash of a place, how many names it gets before they are counted again; 0 where it
        # is full, which it stays.
        self._room: dict[int, int] = {}

    def of(self, connection: sqlite3.Connection, wanted: Sequence[tuple[_Place, str]]) -> list[str]:
        """For each name of a place itself, or `OTHERS` where its place has no room for it."""
        rows = [(*place, name) for place, name in wanted]
        new = list(dict.fromkeys(row for row in rows if hash(row) not in self._known))
        if new:
            # Where a transaction is undone, its names stay known: a place may have a few more then.
            self._known.update(map(hash, self._with_room(connection, new)))
        names = [row[-1] if hash(row) in self._known else OTHERS for row in rows]
        if len(self._known) + len(self._room) > REMEMBERED:
            self._known.clear()
            self._room.clear()
        return names

    def _with_room(self, connection: sqlite3.Connection, rows: Sequence[_Row]) -> list[_Row]:
        """Those rows that are there, and as many of the others as their places have room for."""
        found = find(connection, self._known_names, rows)
        there = {rows[number] for (number,) in found}
        new: dict[_Place, list[_Row]] = {}
        for row in rows:
            if row not in there:
                new.setdefault(row[:-1], []).append(row)
        self._count(connection, {place: len(more) for place, more in new.items()})
        return [*there, *(row for place, more in new.items() for row in self._fitting(place, more))]

    def _count(self, connection: sqlite3.Connection, wanted: Mapping[_Place, int]) -> None:
        """Count the names of places of which it is not known whether so many more fit."""
        places = [
            place
            for place, count in wanted.items()
            if (room := self._room.get(hash(place))) is None or 0 < room < count
        ]
        for number, count in find(connection, self._how_many, places):
            self._room[hash(places[number])] = max(0, KEPT_NAMES - count)

    def _fitting(self, place: _Place, rows: Sequence[_Row]) -> Sequence[_Row]:
        """As many of these new rows of a place as it has room for, which is taken."""
        room = self._room.pop(hash(place), 0)
        taken = min(room, len(rows))
        if taken < room or not room:
            self._room[hash(place)] = min(room - taken, UNCOUNTED)
        return rows[:taken]
