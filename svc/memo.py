"""What was made of a text, kept for the next time that it comes, in a bounded amount of memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from svc import jsontext, limits

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
        self._kept: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> T:
        """The value; the same object for the same text while that is kept."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text][0]
        value, size = self._make(text), _size(text)
        if size > self._most * _LARGEST:
            return value
        with self._lock:
            value, before = self._kept.setdefault(text, (value, 0))
            self._kept[text] = value, size
            self._bytes += size - before
            while self._bytes > self._most:
                self._bytes -= self._kept.popitem(last=False)[1][1]
        return value


def _size(text: str) -> int:
    return CHAR_BYTES * len(text) + ELEMENT_BYTES * jsontext.separators(text.encode())
