"""What every model was asked, what that took, and how well it keeps to labels, over all processes.

As with the metrics, each process writes numbers of its own into memory that all of them share,
and whichever is asked sums them up.
"""

from __future__ import annotations

import mmap
import struct
import threading
from operator import add
from typing import NamedTuple

from svc.sharing import ProcessLock

PROCESSES = 128  # whose numbers are kept; later ones share the places of those that ended long ago
MODELS = 64  # of one process, whose ids callers choose; the last place counts all the others
OTHERS = "other"  # stands for the models that found no place of their own
_NAME_BYTES = 320  # of a model's id
_NUMBERS = struct.Struct("=7d")
_PLACE = _NAME_BYTES + _NUMBERS.size
_GIVEN = 8  # bytes at the start that count how many processes there were


class Counts(NamedTuple):
    """The sums of one model."""

    calls: float = 0.0
    failures: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost_usd: float = 0.0
    mass: float = 0.0  # sum over label readings of the probability that fell on valid labels
    readings: float = 0.0  # how many these are

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(add, self, other))


class UsageBoard:
    """The places of all processes; made before these are forked."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._memory = mmap.mmap(-1, _GIVEN + PROCESSES * MODELS * _PLACE)

    def open(self) -> Usage:
        """The places of this process alone."""
        with self._lock:
            given = int.from_bytes(self._memory[:_GIVEN], "little")
            self._memory[:_GIVEN] = (given + 1).to_bytes(_GIVEN, "little")
        start = _GIVEN + given % PROCESSES * MODELS * _PLACE
        return Usage(memoryview(self._memory)[start : start + MODELS * _PLACE])

    def sums(self) -> dict[str, Counts]:
        """The counts of each model, over all processes."""
        given = min(PROCESSES, int.from_bytes(self._memory[:_GIVEN], "little"))
        found: dict[str, Counts] = {}
        for place in range(given * MODELS):
            at = _GIVEN + place * _PLACE
            if self._memory[at]:
                name = self._memory[at : at + _NAME_BYTES].rstrip(b"\0").decode("utf-8", "replace")
                counts = Counts(*_NUMBERS.unpack_from(self._memory, at + _NAME_BYTES))
                found[name] = found.get(name, Counts()).plus(counts)
        return found

    def close(self) -> None:
        """Let go of it in this process."""
        self._lock.close()


class Usage:
    """Counts for one process; safe across its threads."""

    def __init__(self, places: memoryview | None = None) -> None:
        """`places` are shared with other processes; without them nobody else sees the counts."""
        self._places = places if places is not None else memoryview(bytearray(MODELS * _PLACE))
        self._at: dict[str, int] = {}
        self._lock = threading.Lock()
        for place in range(MODELS):  # of a process that ended; its counts go on
            at = place * _PLACE
            if self._places[at]:
                name = bytes(self._places[at : at + _NAME_BYTES]).rstrip(b"\0")
                self._at[name.decode("utf-8", "replace")] = at

    def add(self, model_id: str, counts: Counts) -> None:
        """Add to what is counted of a model."""
        with self._lock:
            at = self._at.get(model_id)
            if at is None:  # ids that no model answers to take no place
                at = self._place(model_id if counts.calls > counts.failures else OTHERS)
            old = _NUMBERS.unpack_from(self._places, at + _NAME_BYTES)
            _NUMBERS.pack_into(self._places, at + _NAME_BYTES, *map(add, old, counts))

    def _place(self, model_id: str) -> int:
        """A new place for a model, or the one of all others when there is none left."""
        name = model_id.encode("utf-8", "replace")
        if len(self._at) >= MODELS - 1 or len(name) > _NAME_BYTES:
            model_id, name = OTHERS, OTHERS.encode()
        if model_id not in self._at:
            at = len(self._at) * _PLACE
            self._places[at : at + len(name)] = name
            self._at[model_id] = at
        return self._at[model_id]
