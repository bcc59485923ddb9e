"""Which pages of a SQLite file are free, as its list of them says at one moment.

There may be millions: they are read while nobody may write. The format of the list:
https://www.sqlite.org/fileformat2.html#the_freelist
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

# A page that lists free ones begins with the next such page and how many it lists; their numbers
# of four bytes follow.
_TRUNK = struct.Struct(">II")
_NUMBER_BYTES = 4


class FreePages:
    """The pages that list others, and those that are listed."""

    def __init__(self, page: Callable[[int], bytes], first: int, pages: int) -> None:
        """Read the list that begins with the page `first`, of a file of so many pages.

        `page` gives the bytes of a page. What cannot be a part of a list ends it.
        """
        # How many bytes of each are in use.
        self._used = dict[int, int]()
        listed = [np.empty(0, np.uint32)]
        while 0 < first <= pages and first not in self._used:
            trunk = page(first)
            if len(trunk) < _TRUNK.size:
                break
            following, count = _TRUNK.unpack_from(trunk)
            count = min(count, (len(trunk) - _TRUNK.size) // _NUMBER_BYTES)
            self._used[first] = _TRUNK.size + _NUMBER_BYTES * count
            listed.append(np.frombuffer(trunk, ">u4", count, _TRUNK.size).astype(np.uint32))
            first = following
        every: NDArray[np.uint32] = np.concatenate(listed)
        self._count = len(self._used) + len(every)
        self._listed, self._pages = every[every <= pages], pages

    def __len__(self) -> int:
        """How many the list has."""
        return self._count

    def among(self, numbers: Iterable[int]) -> dict[int, int]:
        """The free ones of these pages, each with how many bytes at its beginning are in use."""
        wanted = np.zeros(self._pages + 1, np.bool_)
        wanted[[number for number in numbers if number <= self._pages]] = True
        free = dict.fromkeys(self._listed[wanted[self._listed]].tolist(), 0)
        return free | {trunk: used for trunk, used in self._used.items() if wanted[trunk]}
