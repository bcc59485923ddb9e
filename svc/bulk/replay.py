"""Replies that are known, for one row after the other; a call without one is wanted.

A call has its id from its row, its provider and its body, so that the same row asks for the same
replies however often it is replayed. A line of a file of replies is the id, the HTTP status and the
sealed body of a reply.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import BinaryIO

from svc.bulk.sealing import UNSEALED, Sealing
from svc.errors import Pending
from svc.providers import Reply
from svc.records import Model

# A call is sent so many times until what came of it counts: no result, or one that says to ask
# again.
TRIES = 4

# What stands for the status of a call that has no reply, and the status that it then gets.
NO_STATUS = 0
_UNAVAILABLE = 503

# By these statuses a provider says that asking again may help; those of 500 and more do so too,
# but for the one that says that a function is missing.
_AGAIN = frozenset({NO_STATUS, 408, 409, 425, 429})
_NOT_IMPLEMENTED = 501

_ID_BYTES = 16


class Replay:
    """Gives the replies of a block's rows."""

    def __init__(
        self,
        files: Sequence[BinaryIO],
        want: Callable[[str, Model, bytes], None],
        sealing: Sealing = UNSEALED,
    ) -> None:
        """`files` are those of replies, the earliest first, whose bodies have this `sealing`.

        `want` is told of a call without a reply: its id, the model and the body.
        """
        self._files, self._want, self._sealing = files, want, sealing
        # For each id the number of its place; four numbers a place take less than an object.
        self._places: dict[bytes, int] = {}
        self._numbers = array("q")
        self._row = 0
        self._asked: Counter[bytes] = Counter()
        self._index()

    def begin(self, row: int) -> None:
        """Go on to the row with this number."""
        self._row = row
        self._asked.clear()

    def reply(self, model: Model, body: bytes) -> Reply:
        """The model's reply to a call of the row.

        Raises `Pending` where there is none yet, and `SvcError` where it cannot be opened.
        """
        asked = hashlib.blake2b(b"%s %s" % (model.provider.encode(), body), digest_size=_ID_BYTES)
        same = asked.digest()
        # A decision may make the same call twice, for two members of a council.
        asked.update(b" %d %d" % (self._row, self._asked[same]))
        self._asked[same] += 1
        call = asked.hexdigest()
        place = self._places.get(asked.digest())
        if place is None:
            self._want(call, model, body)
            raise Pending("the reply to a call is not there yet")
        file, at, length, status = self._numbers[4 * place : 4 * place + 4]
        self._files[file].seek(at)
        sealed = self._files[file].read(length)
        return Reply(status or _UNAVAILABLE, {}, self._sealing.open(label(call, status), sealed))

    def _index(self) -> None:
        """Note where each reply stands that counts."""
        tries: Counter[bytes] = Counter()
        for number, file in enumerate(self._files):
            at = 0
            for line in file:
                text, status, body = line.split(b" ", 2)
                call = bytes.fromhex(text.decode())
                tries[call] += 1
                if not _again(int(status)) or tries[call] >= TRIES:
                    self._places[call] = len(self._numbers) // 4
                    start = at + len(line) - len(body)
                    length = len(body.rstrip(b"\n"))
                    self._numbers.extend((number, start, length, int(status)))
                at += len(line)


def label(call: str, status: int) -> str:
    """Under which the body of a reply is sealed."""
    return f"{call} {status}"


def _again(status: int) -> bool:
    return status in _AGAIN or (status >= 500 and status != _NOT_IMPLEMENTED)
