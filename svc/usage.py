"""Each model's calls, tokens and cost, and how well it keeps to labels, over all processes.

As with the metrics, each process writes its own numbers into memory that all of them share, and
any of them can sum them up.
"""

from __future__ import annotations

import mmap
import struct
import threading
from operator import add
from typing import NamedTuple

from svc.sharing import ProcessLock

# The processes whose numbers are kept. Later ones share the places of those that ended long ago.
PROCESSES = 128

# The models of one process. Callers choose their ids, so the last place counts all the others.
MODELS = 64
OTHERS = "other"

# A place holds a model's id and its numbers.
_NAME_BYTES = 320
_NUMBERS = struct.Struct("=7d")
_PLACE_BYTES = _NAME_BYTES + _NUMBERS.size

# The memory begins with the number of processes so far.
_COUNT_BYTES = 8


class Counts(NamedTuple):
    """The sums of one model.

    `mass` is the sum, over the given number of label `readings`, of the probability that fell on
    valid labels.
    """

    calls: float = 0.0
    failures: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost_usd: float = 0.0
    mass: float = 0.0
    readings: float = 0.0

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(add, self, other))


class UsageBoard:
    """The places of all processes; made before these are forked."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._memory = mmap.mmap(-1, _COUNT_BYTES + PROCESSES * MODELS * _PLACE_BYTES)

    def open(self) -> Usage:
        """The places of this process alone."""
        with self._lock:
            processes = int.from_bytes(self._memory[:_COUNT_BYTES], "little")
            self._memory[:_COUNT_BYTES] = (processes + 1).to_bytes(_COUNT_BYTES, "little")
        start = _COUNT_BYTES + processes % PROCESSES * MODELS * _PLACE_BYTES
        return Usage(memoryview(self._memory)[start : start + MODELS * _PLACE_BYTES])

    def sums(self) -> dict[str, Counts]:
        """The counts of each model, over all processes."""
        processes = min(PROCESSES, int.from_bytes(self._memory[:_COUNT_BYTES], "little"))
        sums: dict[str, Counts] = {}
        for place in range(processes * MODELS):
            offset = _COUNT_BYTES + place * _PLACE_BYTES
            if self._memory[offset]:
                numbers_at = offset + _NAME_BYTES
                model_id = _text(self._memory[offset:numbers_at])
                counts = Counts(*_NUMBERS.unpack_from(self._memory, numbers_at))
                sums[model_id] = sums.get(model_id, Counts()).plus(counts)
        return sums

    def close(self) -> None:
        """Release it in this process."""
        self._lock.close()


class Usage:
    """Counts for one process; safe across its threads."""

    def __init__(self, places: memoryview | None = None) -> None:
        """`places` are shared with other processes; without them nobody else sees the counts."""
        self._places = (
            places if places is not None else memoryview(bytearray(MODELS * _PLACE_BYTES))
        )
        # Where the place of each model begins.
        self._offsets: dict[str, int] = {}
        self._lock = threading.Lock()
        # A process that ended may have had these places before. Its counts go on.
        for place in range(MODELS):
            offset = place * _PLACE_BYTES
            if self._places[offset]:
                model_id = _text(bytes(self._places[offset : offset + _NAME_BYTES]))
                self._offsets[model_id] = offset

    def add(self, model_id: str, counts: Counts) -> None:
        """Add to the counts of a model."""
        with self._lock:
            offset = self._offsets.get(model_id)
            if offset is None:
                # An id of which every call failed may name no model, and gets no place.
                offset = self._place(model_id if counts.calls > counts.failures else OTHERS)
            old = _NUMBERS.unpack_from(self._places, offset + _NAME_BYTES)
            _NUMBERS.pack_into(self._places, offset + _NAME_BYTES, *map(add, old, counts))

    def _place(self, model_id: str) -> int:
        """The offset of a new place for a model, or of the shared one where none is left."""
        name = model_id.encode("utf-8", "replace")
        if len(self._offsets) >= MODELS - 1 or len(name) > _NAME_BYTES:
            model_id, name = OTHERS, OTHERS.encode()
        if model_id not in self._offsets:
            offset = len(self._offsets) * _PLACE_BYTES
            self._places[offset : offset + len(name)] = name
            self._offsets[model_id] = offset
        return self._offsets[model_id]


def _text(name: bytes) -> str:
    """A model's id out of the bytes of its place."""
    return name.rstrip(b"\0").decode("utf-8", "replace")
