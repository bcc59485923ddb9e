"""What was used last, of several owners that share a bounded room."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

OwnerT = TypeVar("OwnerT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Recent(Generic[OwnerT, KeyT, ValueT]):
    """Keeps values that weigh at most `size` together; one thread at a time uses it.

    For a further one, an owner that has more than half of the room gives up what it used longest
    ago, so that the many values of one owner leave those of others alone. Where there is none, what
    was used longest ago is given up, whoever has it.
    """

    def __init__(self, size: float, weigh: Callable[[ValueT], int] = lambda _: 1) -> None:
        """By default each value weighs 1, so that `size` is how many there are at most.

        A value is weighed when it is put there.
        """
        self._size, self._half, self._weigh = size, max(1, size / 2), weigh
        # Those used last stand at the end, of all owners and of each.
        self._kept: OrderedDict[tuple[OwnerT, KeyT], tuple[ValueT, int]] = OrderedDict()
        self._keys: dict[OwnerT, OrderedDict[KeyT, None]] = {}
        self._weight, self._weights = 0, Counter[OwnerT]()
        # The owner with more than half, if there is one.
        self._large: tuple[OwnerT] | None = None

    def get(self, owner: OwnerT, key: KeyT) -> ValueT | None:
        """The value that is kept under a key, which counts as used now."""
        found = self._kept.get((owner, key))
        if found is None:
            return None
        self._kept.move_to_end((owner, key))
        self._keys[owner].move_to_end(key)
        return found[0]

    def put(self, owner: OwnerT, key: KeyT, value: ValueT) -> list[tuple[OwnerT, KeyT]]:
        """Keep a value, in place of another one under the key; what was given up for it."""
        self.remove(owner, key)
        weight = self._weigh(value)
        self._kept[owner, key] = value, weight
        self._keys.setdefault(owner, OrderedDict())[key] = None
        self._weight += weight
        self._weights[owner] += weight
        if self._large is None and self._weights[owner] > self._half:
            self._large = (owner,)
        given_up = []
        while self._weight > self._size:
            given_up.append(self._next_to_go())
            self.remove(*given_up[-1])
        return given_up

    def remove(self, owner: OwnerT, key: KeyT) -> None:
        """Keep it no longer, if it is kept."""
        if (owner, key) not in self._kept:
            return
        _, weight = self._kept.pop((owner, key))
        self._weight -= weight
        self._weights[owner] -= weight
        del self._keys[owner][key]
        if self._weights[owner] <= self._half and self._large == (owner,):
            self._large = self._another_large(owner)
        if not self._keys[owner]:
            del self._keys[owner], self._weights[owner]

    def _another_large(self, owner: OwnerT) -> tuple[OwnerT] | None:
        """Another owner with more than half, which may be where two values are heavy."""
        if self._weight - self._weights[owner] <= self._half:
            return None
        return next(((one,) for one, own in self._weights.items() if own > self._half), None)

    def _next_to_go(self) -> tuple[OwnerT, KeyT]:
        if self._large is None:
            return next(iter(self._kept))
        (owner,) = self._large
        return owner, next(iter(self._keys[owner]))
