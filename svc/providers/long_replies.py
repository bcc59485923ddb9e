"""What long replies take of a process: memory while they come in, and a processor to read them.

A provider that lies can answer many requests at once with as much as is read of a reply. Parsed,
each byte takes up to thirty.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Self

from svc import limits
from svc.costly import CostlyWork, held
from svc.deadline import Deadline
from svc.errors import Timeout
from svc.jsontext import separators
from svc.providers.failures import BadReply, CallTimedOut
from svc.shares import Shares

# For replies that need no turn.
_AT_ONCE = contextlib.nullcontext()

# Why a reply is not read that may be well.
TOO_MUCH = "the replies to this request hold more than is read for one"

# What reading one may take of a processor before its caller's next one has to wait, in seconds.
UNNOTICED_S = 0.02


class LongReplies:
    """The room for those of a process, and the turns at reading them."""

    def __init__(self, room_bytes: int = limits.LONG_REPLIES_BYTES) -> None:
        self._room = Shares(room_bytes)
        self._turns = CostlyWork(limits.REPLY_PARTS_ALWAYS_READ, unnoticed_s=UNNOTICED_S)
        self._lock = threading.Lock()

    def coming(self, deadline: Deadline) -> ComingReply:
        """A reply that may become long, until the end of the block; `deadline` is its request's."""
        return ComingReply(self._room, deadline)

    def reading(self, body: bytes, deadline: Deadline) -> AbstractContextManager[None]:
        """Inside the block a whole reply is read, after its work was taken from its request's.

        Long ones are read one after the other, so that no more than one is in memory as objects.
        Callers take turns, with pauses. Raises `BadReply` and `CallTimedOut`.
        """
        parts = len(body) // limits.REPLY_BYTES_A_PART + separators(body)
        is_long = parts > limits.REPLY_PARTS_ALWAYS_READ
        return self._turn(parts, deadline) if is_long else _AT_ONCE

    @contextlib.contextmanager
    def _turn(self, parts: int, deadline: Deadline) -> Iterator[None]:
        effort = deadline.effort
        if not effort.take(parts):
            raise BadReply(TOO_MUCH)
        with contextlib.ExitStack() as turn:
            try:
                turn.enter_context(self._turns.turn(effort.caller, parts, deadline))
                turn.enter_context(held(self._lock, deadline))
            except Timeout:
                raise CallTimedOut("the call took too long") from None
            yield


class ComingReply:
    """One reply on its way; every call has one, and a generator would take twice as long."""

    __slots__ = ("_caller", "_deadline", "_has_room", "_room")

    def __init__(self, room: Shares, deadline: Deadline) -> None:
        self._room, self._deadline, self._has_room = room, deadline, False
        self._caller = deadline.effort.caller

    def take(self, is_wanted: Callable[[], bool], size: int) -> bool:
        """Whether so many bytes more may be held of it, which is long.

        Waits for room, as much as any reply may need, as long as `is_wanted`; until then the
        provider has to wait with the rest.
        """
        while not self._has_room:
            if not is_wanted() or self._deadline.left() <= 0:
                return False
            self._has_room = self._room.take(self._caller, limits.REPLY_BYTES)
            if not self._has_room:
                time.sleep(limits.ROOM_LOOK_S)
        return self._deadline.effort.take(size // limits.REPLY_BYTES_A_PART)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the room back."""
        if self._has_room:
            self._room.give_back(self._caller, limits.REPLY_BYTES)
