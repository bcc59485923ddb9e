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

    A value takes room of an account, by default of its owner's. For a further one, an account that
    has more than half of the room gives up what was used longest ago of its own, so that its many
    values leave those of others alone. Where there is none, what was used longest ago is given up,
    whoever has it.
    """

    def __init__(self, size: float, weigh: Callable[[ValueT], int] = lambda _: 1) -> None:
        """By default each value weighs 1, so that `size` is how many there are at most.

        A value is weighed when it is put there.
        """
        self._size, self._half, self._weigh = size, max(1, size / 2), weigh
        # Those used last stand at the end, of all accounts and of each.
        self._kept: OrderedDict[tuple[OwnerT, KeyT], tuple[ValueT, int, Hashable]] = OrderedDict()
        self._places: dict[Hashable, OrderedDict[tuple[OwnerT, KeyT], None]] = {}
        self._weight, self._weights = 0, Counter[Hashable]()
        # The account with more than half, if there is one.
        self._large: tuple[Hashable] | None = None

    def get(self, owner: OwnerT, key: KeyT) -> ValueT | None:
        """The value that is kept under a key, which counts as used now."""
        place = (owner, key)
        found = self._kept.get(place)
        if found is None:
            return None
        value, _, account = found
        self._kept.move_to_end(place)
        self._places[account].move_to_end(place)
        return value

    def put(
        self, owner: OwnerT, key: KeyT, value: ValueT, account: Hashable = None
    ) -> list[tuple[OwnerT, KeyT]]:
        """Keep a value, in place of another one under the key; what was given up for it.

        One that takes the place of another takes room of the same account.
        """
        before = self.remove(owner, key)
        account = account if before is None else before
        account, weight = owner if account is None else account, self._weigh(value)
        self._kept[owner, key] = value, weight, account
        self._places.setdefault(account, OrderedDict())[owner, key] = None
        self._weight += weight
        self._weights[account] += weight
        if self._large is None and self._weights[account] > self._half:
            self._large = (account,)
        given_up = []
        while self._weight > self._size:
            given_up.append(self._next_to_go())
            self.remove(*given_up[-1])
        return given_up

    def remove(self, owner: OwnerT, key: KeyT) -> Hashable:
        """Keep it no longer; the account that it took room of, None where it was not kept."""
        place = (owner, key)
        if place not in self._kept:
            return None
        _, weight, account = self._kept.pop(place)
        self._weight -= weight
        self._weights[account] -= weight
        del self._places[account][place]
        if self._weights[account] <= self._half and self._large == (account,):
            self._large = self._another_large(account)
        if not self._places[account]:
            del self._places[account], self._weights[account]
        return account

    def _another_large(self, account: Hashable) -> tuple[Hashable] | None:
        """Another account with more than half, which may be where two values are heavy."""
        if self._weight - self._weights[account] <= self._half:
            return None
        return next(((one,) for one, own in self._weights.items() if own > self._half), None)

    def _next_to_go(self) -> tuple[OwnerT, KeyT]:
        if self._large is None:
            return next(iter(self._kept))
        (account,) = self._large
        return next(iter(self._places[account]))
