"""What was made of something, kept for the next time that it comes, in a bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Generic, TypeVar

from svc import jsontext, limits
from svc.recent import Recent

KeyT = TypeVar("KeyT", bound=Hashable)
T = TypeVar("T")

# What a text of JSON fills with what is made of it, in bytes: for each of its characters, and for
# each list, object and element in it.
CHAR_BYTES = 8
ELEMENT_BYTES = 200

# What one value may fill of all, as a part of it.
_LARGEST = 1 / 4


class SizedMemo(Generic[KeyT, T]):
    """Makes a value of a key, or gives the one that was made when it came before.

    The keys that came last are kept, as many as fill `most` bytes with their values. Callers choose
    them, so that a number of keys would be no bound.
    """

    def __init__(
        self,
        make: Callable[[KeyT], T],
        size: Callable[[KeyT], int],
        most: int = limits.REMEMBERED_BYTES,
    ) -> None:
        """`size` gives about how many bytes a key and its value fill."""
        self._make, self._size, self._most = make, size, most
        # Each value with its bytes; all are of one owner.
        self._kept: Recent[None, KeyT, tuple[T, int]] = Recent(most, itemgetter(1))
        self._lock = threading.Lock()

    def __call__(self, key: KeyT) -> T:
        """The value; the same object for the same key while that is kept."""
        with self._lock:
            if found := self._kept.get(None, key):
                return found[0]
        value, size = self._make(key), self._size(key)
        if size > self._most * _LARGEST:
            return value
        with self._lock:
            # Another thread may have been faster.
            if found := self._kept.get(None, key):
                return found[0]
            self._kept.put(None, key, (value, size))
        return value


class Memo(SizedMemo[str, T]):
    """Makes values of texts of JSON, and keeps them."""

    def __init__(self, make: Callable[[str], T], most: int = limits.REMEMBERED_BYTES) -> None:
        super().__init__(make, _size, most)


def _size(text: str) -> int:
    return CHAR_BYTES * len(text) + ELEMENT_BYTES * jsontext.separators(text.encode())
