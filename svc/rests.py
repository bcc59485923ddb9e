"""Until when API keys pause after costly work, and whether one is alone, over all workers."""

from __future__ import annotations

import hashlib
import math
import mmap
import struct
import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache

from svc import processors

# Keys that have the same one of these pause for each other: of a thousand, any two do one time in
# nine. Those that no key has take no memory.
_SLOTS = 2**22

# The number of the key that came last, when it did, and when the last other one did before it.
_LATEST = struct.Struct("=Qdd")


class Work(Enum):
    """Kinds of work after which a key pauses in all processes of a server, in each by itself."""

    BODIES = auto()  # to read them
    HELD = auto()  # bodies that views keep
    ANSWERS = auto()
    STORED = auto()  # what is stored, to be read or changed

    @property
    def at_once(self) -> int:
        """How many processes do it side by side, at most.

        One at a time changes what is stored. Half of the processors answer, as two of them often
        are one core, and others are to find room on it.
        """
        if self is Work.STORED:
            return 1
        usable = processors.usable()
        return max(1, usable // 2) if self is Work.ANSWERS else usable


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

    def take_back(self, key_id: str, seconds: float) -> None:
        """Have the key pause less in all processes, by its part of so much in a single one."""
        self._until[_slot(key_id)] -= seconds / self._at_once


class Company:
    """When somebody else than a key came last; processes forked after this was made share it.

    Without a lock: of two keys that come at the same instant one may be missed, until it comes
    again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds, and must be the same for all processes."""
        self._clock = clock
        self._memory = mmap.mmap(-1, _LATEST.size)
        _LATEST.pack_into(self._memory, 0, 0, -math.inf, -math.inf)

    def came(self, key_id: str) -> None:
        """Note that this key asks for something."""
        number = _number(key_id)
        latest, latest_at, other_at = _LATEST.unpack_from(self._memory)
        if number != latest:
            other_at = latest_at
        _LATEST.pack_into(self._memory, 0, number, self._clock(), other_at)

    def away_s(self, key_id: str) -> float:
        """The seconds since another key came; infinity where none did."""
        latest, latest_at, other_at = _LATEST.unpack_from(self._memory)
        return self._clock() - float(other_at if latest == _number(key_id) else latest_at)


@lru_cache(4_096)
def _number(key_id: str) -> int:
    """What stands for a key, which nobody chooses, as ids of keys are random."""
    return int.from_bytes(hashlib.blake2b(key_id.encode(), digest_size=8).digest())


def _slot(key_id: str) -> int:
    """Where a key's pauses are."""
    return _number(key_id) % _SLOTS


class Rests:
    """Until when each key pauses, in seconds of the clock of those kinds of work that share this.

    A key that mixes several kinds of work takes no more of a processor than one with a single kind.
    """

    def __init__(self, lenience_s: float = 0.0) -> None:
        """A pause ends so many seconds early."""
        self._lenience_s = lenience_s
        self._until: dict[str, float] = {}
        self._booking = threading.Lock()
        # Those of all processes, once a server shares them. Their clock is the system's.
        self.shared: SharedRests | None = None

    def until(self, key_id: str | None) -> float:
        """When the key's next work may begin; callers without a key never pause."""
        if key_id is None:
            return 0.0
        until = self._until.get(key_id, 0.0)
        if self.shared is not None:
            until = max(until, self.shared.until(key_id))
        return until - self._lenience_s

    def add(self, key_id: str, now: float, seconds: float) -> None:
        """Have the key pause for so long after its pauses of before."""
        with self._booking:
            self._until[key_id] = max(self._until.get(key_id, 0.0), now) + seconds
        if self.shared is not None:
            self.shared.add(key_id, now, seconds)

    def take_back(self, key_id: str, seconds: float) -> None:
        """Have the key pause for so much less."""
        with self._booking:
            self._until[key_id] = self._until.get(key_id, 0.0) - seconds
        if self.shared is not None:
            self.shared.take_back(key_id, seconds)
