"""Sums by name that the processes of a server keep in memory that all of them share.

Each process writes its own numbers, and any of them can sum them up. The numbers of a process that
ended stay, so that a sum never falls while the server runs.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Iterator, Sequence
from operator import add

from svc.sharing import ProcessPlaces

# The processes whose numbers are kept. Later ones go on with the numbers of those that ended; where
# so many run at once, what further ones count is seen by nobody.
PROCESSES = 128

# What has no place of its own is summed up under this name.
OTHERS = "other"

# The bytes of a number, of which the bytes of a name are a multiple.
_NUMBER_BYTES = 8


class Layout:
    """Where a process keeps its names and numbers: a place for each name, taken in order."""

    def __init__(self, names: int, name_bytes: int, numbers: int) -> None:
        """`names` is how many there are at most, `OTHERS` included."""
        self.names, self.name_bytes = names, name_bytes
        self.numbers = struct.Struct(f"={numbers}d")
        self.place_bytes = name_bytes + self.numbers.size
        self.size = names * self.place_bytes

    def places(self, memory: memoryview) -> Iterator[tuple[str, int]]:
        """The names in a process's memory, and where the place of each begins."""
        for offset in range(0, self.size, self.place_bytes):
            if not memory[offset]:
                return
            name = bytes(memory[offset : offset + self.name_bytes]).rstrip(b"\0")
            yield name.decode("utf-8", "replace"), offset

    def read(self, memory: memoryview, offset: int) -> tuple[float, ...]:
        """The numbers of the place that begins at `offset`."""
        return self.numbers.unpack_from(memory, offset + self.name_bytes)


class TallyBoard:
    """The sums of all processes; made before these are forked."""

    def __init__(self, names: int, name_bytes: int, numbers: int) -> None:
        """Each of up to `names` names, of up to `name_bytes` bytes, has so many `numbers`."""
        self._layout = Layout(names, name_bytes, numbers)
        self._places = ProcessPlaces(PROCESSES)
        self._memory = memoryview(mmap.mmap(-1, PROCESSES * self._layout.size))
        self.close = self._places.close

    def open(self) -> Tally:
        """The sums that this process alone adds to."""
        place = self._places.take()
        memory = memoryview(bytearray(self._layout.size)) if place is None else self._of(place)
        return Tally(self._layout, memory)

    def sums(self) -> dict[str, tuple[float, ...]]:
        """The sums under each name, over all processes."""
        sums: dict[str, tuple[float, ...]] = {}
        for place in range(self._places.taken):
            memory = self._of(place)
            for name, offset in self._layout.places(memory):
                numbers = self._layout.read(memory, offset)
                sums[name] = tuple(map(add, sums[name], numbers)) if name in sums else numbers
        return sums

    def _of(self, place: int) -> memoryview:
        start = place * self._layout.size
        return self._memory[start : start + self._layout.size]


class Tally:
    """The sums of one process; safe across its threads."""

    def __init__(self, layout: Layout, memory: memoryview) -> None:
        self._layout, self._memory, self._numbers = layout, memory, memory.cast("d")
        # A process that ended may have had this memory before. Its sums go on.
        self._offsets = dict(layout.places(memory))
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names that have a place, also from a process that had this memory before."""
        with self._lock:
            return list(self._offsets)

    def add(self, name: str, numbers: Sequence[float], lasting: bool = True) -> None:
        """Add to the sums under a name, where it has no place and is not `lasting` to `OTHERS`."""
        with self._lock:
            offset = self._offsets.get(name)
            if offset is None:
                offset = self._place(name if lasting else OTHERS)
            first = (offset + self._layout.name_bytes) // _NUMBER_BYTES
            for place, number in enumerate(numbers, first):
                self._numbers[place] += number

    def _place(self, name: str) -> int:
        """The offset of a new place for a name, or of the shared one where none is left."""
        text = name.encode("utf-8", "replace")
        if len(self._offsets) >= self._layout.names - 1 or len(text) > self._layout.name_bytes:
            name, text = OTHERS, OTHERS.encode()
        if name not in self._offsets:
            offset = len(self._offsets) * self._layout.place_bytes
            self._memory[offset : offset + len(text)] = text
            self._offsets[name] = offset
        return self._offsets[name]
