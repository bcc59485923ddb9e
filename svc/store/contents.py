"""What decisions hold, so that the same is not written twice.

A decision that was answered from the cache has the answers and readings of one that is stored:
where these are long, it refers to that one.
"""

from __future__ import annotations

import hashlib
import sqlite3

from svc.recent import Recent
from svc.records import Decision

# The answers and readings, in characters, from which on a decision refers to an equal one.
LONG = 4_096

# How many long ones are remembered, about 200 bytes each.
REMEMBERED = 10_000

_IS_THERE = "SELECT 1 FROM decisions WHERE seq = ? AND id = ?"


def digest_of(decision: Decision, answers: str, readings: str) -> bytes | None:
    """What names the content within its project; None where it is short."""
    if len(answers) + len(readings) < LONG:
        return None
    parts = (decision.project, answers, readings)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


class Contents:
    """Remembers which stored decision holds what; the writer's thread alone uses it."""

    def __init__(self) -> None:
        self._places: Recent[None, bytes, tuple[int, bytes]] = Recent(REMEMBERED)

    def find(self, connection: sqlite3.Connection, digest: bytes | None) -> int | None:
        """The row of a decision that holds this, None where there is none to refer to."""
        place = None if digest is None else self._places.get(None, digest)
        # Its transaction may have been undone since.
        if place is None or connection.execute(_IS_THERE, place).fetchone() is None:
            return None
        return place[0]

    def note(self, digest: bytes, seq: int, ulid: bytes) -> None:
        """Remember that this row holds it."""
        self._places.put(None, digest, (seq, ulid))
