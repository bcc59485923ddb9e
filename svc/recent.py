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
        # Owners, and the values of each, that were used last stand at the end.
        self._kept: OrderedDict[OwnerT, OrderedDict[KeyT, ValueT]] = OrderedDict()
        self._count = 0

    def get(self, owner: OwnerT, key: KeyT) -> ValueT | None:
        """The value that is kept under a key, which counts as used now."""
        own = self._kept.get(owner)
        if own is None or key not in own:
            return None
        self._kept.move_to_end(owner)
        own.move_to_end(key)
        return own[key]

    def put(self, owner: OwnerT, key: KeyT, value: ValueT) -> None:
        """Keep a value, in place of another one under the key."""
        own = self._kept.setdefault(owner, OrderedDict())
        self._count += key not in own
        own[key] = value
        self._kept.move_to_end(owner)
        own.move_to_end(key)
        if self._count > self._size:
            self._give_up_one()

    def _give_up_one(self) -> None:
        owner = max(self._kept, key=lambda one: len(self._kept[one]))
        self._kept[owner].popitem(last=False)
        self._count -= 1
        if not self._kept[owner]:
            del self._kept[owner]
