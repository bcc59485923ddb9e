"""Until when each API key pauses after its costly work, in a worker and over all of them."""

from __future__ import annotations

import hashlib
import mmap
import threading
from enum import Enum, auto
from functools import lru_cache

from svc import processors

# Keys that have the same one of these pause for each other: of a thousand, any two do one time in
# nine. Those that no key has take no memory.
_SLOTS = 2**22


class Work(Enum):
    """Kinds of work after which a key pauses in all processes of a server, in each by itself."""

    BODIES = auto()  # to read them
    HELD = auto()  # bodies that views keep
    ANSWERS = auto()
    STORED = auto()  # what is stored, to be read or changed

    @property
    def at_once(self) -> int:
        """How many processes do it side by side, at most.

        One at a time changes what is stored.
        """
        return 1 if self is Work.STORED else processors.usable()


class SharedRests:
    """The pauses of keys after one kind of work, over all processes forked after this was made.

    Where each of many workers leaves most of its time to others, but they have few processors
    together, a key would have them all.
    """

    def __init__(self, at_once: int) -> None:
        """So many processes do such work side by side, at most."""
        self._at_once = at_once
        self._until = memoryview(mmap.mmap(-1, _SLOTS * 8)).cast("d")

    def until(self, key_id: str) -> float:
        """As of `Rests`."""
        return self._until[_slot(key_id)]

    def add(self, key_id: str, now: float, seconds: float) -> None:
        """Have the key pause in all processes, for its part of what it would in a single one.

        Of two that do this at the same instant one may not count, which no lock is worth.
        """
        slot = _slot(key_id)
        self._until[slot] = max(self._until[slot], now) + seconds / self._at_once


@lru_cache(4_096)
def _slot(key_id: str) -> int:
    """Where a key's pauses are, which nobody chooses, as ids of keys are random."""
    return int.from_bytes(hashlib.blake2b(key_id.encode(), digest_size=8).digest()) % _SLOTS


class Rests:
    """Until when each key pauses, in seconds of the clock of those kinds of work that share this.

    A key that mixes several kinds of work takes no more of a processor than one with a single kind.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._booking = threading.Lock()
        # Those of all processes, once a server shares them. Their clock is the system's.
        self.shared: SharedRests | None = None

    def until(self, key_id: str | None) -> float:
        """When the key's next work may begin; callers without a key never pause."""
        if key_id is None:
            return 0.0
        own = self._until.get(key_id, 0.0)
        return own if self.shared is None else max(own, self.shared.until(key_id))

    def add(self, key_id: str, now: float, seconds: float) -> None:
        """Have the key pause for so long after its pauses of before."""
        with self._booking:
            self._until[key_id] = max(self._until.get(key_id, 0.0), now) + seconds
        if self.shared is not None:
            self.shared.add(key_id, now, seconds)
