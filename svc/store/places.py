"""The last place of a decision: rows and ids only grow, also where the last decisions are deleted.

SQLite would give the row of a deleted decision to the next one, and who still knows it, such as the
review queue, would take one for the other.
"""

from __future__ import annotations

import sqlite3

from svc.store import ids

_NOTED = "SELECT value FROM meta WHERE name = 'last_deleted'"
# In one statement, as each transaction of decisions pays for it.
_LAST = f"SELECT seq, id, ({_NOTED}) FROM decisions ORDER BY seq DESC LIMIT 1"
_NOTE = (
    "INSERT INTO meta (name, value) VALUES ('last_deleted', ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SEQ_BYTES = 8


def last_place(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """The highest row that a decision has or had, 0 without any; new ids are above the second."""
    last = connection.execute(_LAST).fetchone()
    if last is None:
        noted = connection.execute(_NOTED).fetchone()
        return (0, None) if noted is None else _place(noted[0])
    found = (int(last[0]), bytes(last[1]))
    return found if last[2] is None else max(found, _place(last[2]))


def _place(noted: bytes) -> tuple[int, bytes]:
    return int.from_bytes(noted[:_SEQ_BYTES]), noted[_SEQ_BYTES:]


def note_last(connection: sqlite3.Connection) -> None:
    """Remember the last place, before decisions are deleted; of their ids only the time is kept."""
    seq, ulid = last_place(connection)
    if ulid is not None:
        above = ids.earliest((int.from_bytes(ulid) >> ids.RANDOM_BITS) + 1)
        connection.execute(_NOTE, (seq.to_bytes(_SEQ_BYTES) + above,))
