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
from svc.providers.failures import TAKE_TOO_LONG, CallTimedOut, Unread
from svc.records import Model
from svc.shares import Shares

# For replies that need no turn.
_AT_ONCE = contextlib.nullcontext()

# How a comma and opening brackets may be written in a text.
_ESCAPED = (b"\\u002c", b"\\u002C", b"\\u005b", b"\\u005B", b"\\u007b", b"\\u007B")

# Why a reply is not read that may be well.
TOO_MUCH = "the model's replies to this request hold more than is read of them"

# What reading one may take of a processor before its caller's next one has to wait, in seconds.
UNNOTICED_S = 0.02


class LongReplies:
    """The room for those of a process, and the turns at reading them."""

    def __init__(self, room_bytes: int = limits.LONG_REPLIES_BYTES) -> None:
        self._room = _Room(room_bytes)
        self._turns = CostlyWork(limits.REPLY_PARTS_ALWAYS_READ, unnoticed_s=UNNOTICED_S)
        self._lock = threading.Lock()

    def coming(self, model: Model, deadline: Deadline) -> ComingReply:
        """A reply that may become long, until the end of the block; `deadline` is its request's."""
        return ComingReply(self._room, model, deadline)

    def reading(
        self, body: bytes, model: Model, deadline: Deadline
    ) -> AbstractContextManager[None]:
        """Inside the block a whole reply is read, after its work was taken from its request's.

        Long ones are read one after the other, so that no more than one is in memory as objects.
        Callers take turns, with pauses. Raises `Unread` and `CallTimedOut`.
        """
        parts = len(body) // limits.REPLY_BYTES_A_PART + _separators(body)
        is_long = parts > limits.REPLY_PARTS_ALWAYS_READ
        return self._turn(body, parts, model, deadline) if is_long else _AT_ONCE

    @contextlib.contextmanager
    def _turn(self, body: bytes, parts: int, model: Model, deadline: Deadline) -> Iterator[None]:
        effort = deadline.effort
        # The rest of its bytes was taken while they came in.
        more = parts - _parts_that_came(body)
        if parts > limits.REPLY_PARTS or not effort.parts.take(model.id, more):
            raise Unread(TOO_MUCH)
        with contextlib.ExitStack() as turn:
            try:
                turn.enter_context(self._turns.turn(effort.caller, parts, deadline))
                turn.enter_context(held(self._lock, deadline))
            except Timeout:
                raise CallTimedOut("the call took too long") from None
            # Only now, as those that came before it may have taken all of the time.
            if not effort.replies_s.has_left(model.id):
                raise Unread(TAKE_TOO_LONG)
            yield


def _separators(body: bytes) -> int:
    """The commas and opening brackets of a reply, and of JSON that it has in a text as escapes."""
    escaped = sum(map(body.count, _ESCAPED)) if b"\\u00" in body else 0
    return separators(body) + escaped


def _parts_that_came(body: bytes) -> int:
    """What was taken for a body before it was whole, see `ComingReply.take`."""
    return max(0, len(body) // limits.REPLY_BYTES_A_PART - limits.REPLY_PARTS_ALWAYS_READ)


class ComingReply:
    """One reply on its way; every call has one, and a generator would take twice as long."""

    __slots__ = ("_caller", "_deadline", "_has_room", "_model", "_room", "came", "meter")

    def __init__(self, room: _Room, model: Model, deadline: Deadline) -> None:
        self._room, self._model = room, model
        self._deadline, self._has_room = deadline, False
        self._caller = deadline.effort.caller
        self.meter = deadline.effort.meter(model.id)
        # The bytes of it that came beyond those that are always read.
        self.came = 0

    def take(self, is_wanted: Callable[[], bool], size: int) -> bool:
        """Whether so many bytes more may be held of it, which is long.

        Waits for room, as much as any reply may need, as long as `is_wanted`; until then the
        provider has to wait with the rest. Raises `Unread`.
        """
        self.came += size
        if not self.has_left():
            raise Unread(TAKE_TOO_LONG)
        while not self._has_room:
            if not is_wanted() or self._deadline.left() <= 0:
                return False
            self._has_room = self._room.take(self._caller, self._model.provider)
            if not self._has_room:
                time.sleep(limits.ROOM_LOOK_S)
        return self._deadline.effort.parts.take(self._model.id, size // limits.REPLY_BYTES_A_PART)

    def has_left(self) -> bool:
        """Whether the replies of the model may take any more of a processor."""
        self.meter.count()
        return self._deadline.effort.replies_s.has_left(self._model.id)

    def take_whole(self, size: int) -> None:
        """Take a reply of so many bytes that is there already. Raises `Unread`.

        Nothing counts that is done for it: each time it is read the same has to come of it.
        """
        self.meter.pause()
        beyond = size - limits.REPLY_BYTES_ALWAYS_READ
        if beyond > 0 and not self.take(lambda: True, beyond):
            raise Unread(TOO_MUCH)

    def keep(self, size: int) -> None:
        """Take bytes that are kept until all replies of the request are there. Raises `Unread`."""
        kept = self._deadline.effort.kept
        if size > limits.REPLY_KEPT_ALWAYS and not kept.take(self._model.id, size):
            raise Unread(TOO_MUCH)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the room back, and count what was done for the reply."""
        self.meter.pause()
        if self._has_room:
            self._room.give_back(self._caller, self._model.provider)


class _Room:
    """Room for long replies, of which no caller and no provider takes so much that others wait.

    A provider whose replies drip holds what it has for as long as its calls may take.
    """

    def __init__(self, room_bytes: int) -> None:
        self._of_callers, self._of_providers = Shares(room_bytes), Shares(room_bytes)

    def take(self, caller: str | None, provider: str) -> bool:
        """Take as much as any reply may need; False, and nothing, where that is not there now."""
        if not self._of_callers.take(caller, limits.REPLY_BYTES):
            return False
        if self._of_providers.take(provider, limits.REPLY_BYTES):
            return True
        self._of_callers.give_back(caller, limits.REPLY_BYTES)
        return False

    def give_back(self, caller: str | None, provider: str) -> None:
        """Give back what was taken."""
        self._of_callers.give_back(caller, limits.REPLY_BYTES)
        self._of_providers.give_back(provider, limits.REPLY_BYTES)
