"""What was made of a text, kept for the next time that it comes, in a bounded amount of memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, TypeVar

from svc import jsontext, limits
from svc.recent import Recent

T = TypeVar("T")

# What a text of JSON fills with what is made of it, in bytes: for each of its characters, and for
# each list, object and element in it.
CHAR_BYTES = 8
ELEMENT_BYTES = 200

# What one text may fill of all, as a part of it.
_LARGEST = 1 / 4


class Memo(Generic[T]):
    """Makes a value of a text of JSON, or gives the one that was made when it came before.

    The texts that came last are kept, as many as fill `most` bytes. Callers choose them, so that a
    number of texts would be no bound.
    """

    def __init__(self, make: Callable[[str], T], most: int = limits.REMEMBERED_BYTES) -> None:
        self._make, self._most = make, most
        # Each value with its bytes; all are of one owner.
        self._kept: Recent[None, str, tuple[T, int]] = Recent(most, itemgetter(1))
        self._lock = threading.Lock()

    def __call__(self, text: str) -> T:
        """The value; the same object for the same text while that is kept."""
        with self._lock:
            if found := self._kept.get(None, text):
                return found[0]
        value, size = self._make(text), _size(text)
        if size > self._most * _LARGEST:
            return value
        with self._lock:
            # Another thread may have been faster.
            if found := self._kept.get(None, text):
                return found[0]
            self._kept.put(None, text, (value, size))
        return value


def _size(text: str) -> int:
    return CHAR_BYTES * len(text) + ELEMENT_BYTES * jsontext.separators(text.encode())
