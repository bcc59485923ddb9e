"""What was used last, of several owners that share a bounded number of places."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

OwnerT = TypeVar("OwnerT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Recent(Generic[OwnerT, KeyT, ValueT]):
    """Keeps at most `size` values; one thread at a time uses it.

    For a further one, the owner that has the most gives up what it used longest ago, so that the
    many of one owner leave those of others alone.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        # The values of each owner, those used last at the end.
        self._kept: dict[OwnerT, OrderedDict[KeyT, ValueT]] = {}
        # By how many values they have, the owners, those used last at the end: of a thousand values
        # there are at most 44 such numbers.
        self._owners: dict[int, OrderedDict[OwnerT, None]] = {}
        self._count = 0

    def get(self, owner: OwnerT, key: KeyT) -> ValueT | None:
        """The value that is kept under a key, which counts as used now."""
        own = self._kept.get(owner)
        if own is None or key not in own:
            return None
        own.move_to_end(key)
        self._owners[len(own)].move_to_end(owner)
        return own[key]

    def put(self, owner: OwnerT, key: KeyT, value: ValueT) -> None:
        """Keep a value, in place of another one under the key."""
        own = self._kept.setdefault(owner, OrderedDict())
        before = len(own)
        own[key] = value
        own.move_to_end(key)
        self._place(owner, before)
        if self._count > self._size:
            self._give_up_one()

    def _give_up_one(self) -> None:
        owner = next(iter(self._owners[max(self._owners)]))
        own = self._kept[owner]
        before = len(own)
        own.popitem(last=False)
        self._place(owner, before)

    def _place(self, owner: OwnerT, before: int) -> None:
        """Put an owner among those that have as many values; `before` is how many it had."""
        now = len(self._kept[owner])
        self._count += now - before
        if before:
            del self._owners[before][owner]
            if not self._owners[before]:
                del self._owners[before]
        if now:
            self._owners.setdefault(now, OrderedDict())[owner] = None
        else:
            del self._kept[owner]
