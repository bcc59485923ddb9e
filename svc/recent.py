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

    For a further one, an owner that has more than half of all places gives up what it used longest
    ago, so that the many values of one owner leave those of others alone. Where there is none, what
    was used longest ago is given up, whoever has it.
    """

    def __init__(self, size: int) -> None:
        self._size, self._half = size, max(1, size // 2)
        # Those used last stand at the end, of all owners and of each.
        self._kept: OrderedDict[tuple[OwnerT, KeyT], ValueT] = OrderedDict()
        self._keys: dict[OwnerT, OrderedDict[KeyT, None]] = {}
        # The owner with more than half, if there is one.
        self._large: tuple[OwnerT] | None = None

    def get(self, owner: OwnerT, key: KeyT) -> ValueT | None:
        """The value that is kept under a key, which counts as used now."""
        value = self._kept.get((owner, key))
        if value is not None:
            self._kept.move_to_end((owner, key))
            self._keys[owner].move_to_end(key)
        return value

    def put(self, owner: OwnerT, key: KeyT, value: ValueT) -> None:
        """Keep a value, in place of another one under the key."""
        self._kept[owner, key] = value
        self._kept.move_to_end((owner, key))
        own = self._keys.setdefault(owner, OrderedDict())
        own[key] = None
        own.move_to_end(key)
        if len(own) > self._half:
            self._large = (owner,)
        if len(self._kept) > self._size:
            self._give_up_one()

    def _give_up_one(self) -> None:
        if self._large is None:
            owner, key = next(iter(self._kept))
        else:
            (owner,) = self._large
            key = next(iter(self._keys[owner]))
        own = self._keys[owner]
        del self._kept[owner, key], own[key]
        if len(own) <= self._half and self._large == (owner,):
            self._large = None
        if not own:
            del self._keys[owner]
