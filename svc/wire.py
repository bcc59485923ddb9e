"""Bounds what an answer may be made of on its way: bytes, lines of its framing, and pieces.

The standard library reads interim answers (`100 Continue`), chunks and trailers for as long as they
come. A server that lies would so keep a thread at work for the whole time of a call, or for good.
"""

from __future__ import annotations

import http.client
import io
import math
import time
from collections.abc import Callable
from typing import Any

from svc import limits

# A reply of any length may come in chunks and pieces of so many bytes on average, beside those that
# any reply may have.
LEAST_PIECE = 256

# After so many smaller pieces of a reply each further read waits so many seconds first, in which
# more comes. Else one byte after the other would keep a processor busy.
SMALL_PIECES, REST_S = 128, 0.05

# The bytes of framing that may come with each such piece: the size of a chunk takes a few.
LINE_BYTES = 32

# Of lines beyond those that are always read, so many at a time are told of.
LINES_TOLD = 256


class TooLong(Exception):
    """The reply has more bytes, more lines or more pieces than are read of one."""


class _Pieces(io.RawIOBase):
    """A socket's bytes, with bounds on their number and on that of the reads that bring them."""

    def __init__(
        self, raw: Any, most_bytes: float, least_piece: float, tell: Callable[[], None]
    ) -> None:
        """Each `least_piece` bytes that come allow one more read.

        `tell` hears of each read beyond those that any reply may have, before it is done.
        """
        super().__init__()
        self._raw, self._most_bytes, self._least_piece = raw, most_bytes, least_piece
        self._tell = tell
        self._pieces = self._small = self._taken = 0

    @property
    def more(self) -> float:
        """How many further reads, and how many further lines, the bytes that came allow."""
        return self._taken // self._least_piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._small > SMALL_PIECES:
            time.sleep(REST_S)
        if self._pieces >= limits.REPLY_READS_UNCOUNTED:
            self._tell()
        size: int | None = self._raw.readinto(buffer)
        self._pieces += 1
        self._taken += size or 0
        self._small += (size or 0) < LEAST_PIECE
        if self._pieces > limits.REPLY_PIECES + self.more or self._taken > self._most_bytes:
            raise TooLong
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Framed(io.BufferedReader):
    """The same, with a bound on what is read by lines: heads, the sizes of chunks, trailers."""

    def __init__(self, pieces: _Pieces, tell: Callable[[int], None]) -> None:
        """`tell` hears of lines, `LINES_TOLD` at a time, before these are read."""
        super().__init__(pieces)
        self._pieces, self._tell = pieces, tell
        self._lines = self._line_bytes = 0
        self._told = limits.REPLY_LINES_ALWAYS_READ
        # Whether the bytes ended within the last line, or where one should have been.
        self.cut = False

    def readline(self, size: int | None = -1, /) -> bytes:
        if self._lines == self._told:
            self._tell(LINES_TOLD)
            self._told += LINES_TOLD
        line = super().readline(size)
        self.cut = not line.endswith(b"\n")
        self._lines += 1
        self._line_bytes += len(line)
        more = self._pieces.more
        most_bytes = limits.REPLY_FRAMING_BYTES + more * LINE_BYTES
        if self._lines > limits.REPLY_LINES + more or self._line_bytes > most_bytes:
            raise TooLong
        return line


class BoundedResponse(http.client.HTTPResponse):
    """A response that is read with these bounds; its connection is closed once they are passed."""

    most_bytes: float = limits.REPLY_BYTES + limits.REPLY_FRAMING_BYTES
    least_piece: float = math.inf

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pieces = _Pieces(self.fp.detach(), self.most_bytes, self.least_piece, self.more_pieces)
        self.fp = self._framed = _Framed(pieces, self.more_lines)
        self._is_cut = False

    @staticmethod
    def more_lines(lines: int) -> None:
        """Called before so many lines are read beyond those that always are; it may raise."""

    @staticmethod
    def more_pieces() -> None:
        """Called before each further read of a reply that comes in many; it may wait, or raise."""

    def begin(self) -> None:
        """Read the head."""
        super().begin()
        self._is_cut = self._framed.cut

    def read(self, amt: int | None = None) -> bytes:
        """Some of the body. Raises `IncompleteRead` where the connection ended within the head.

        The standard library takes that for the end of the head, and of the body with it.
        """
        if self._is_cut:
            raise http.client.IncompleteRead(b"")
        return super().read(amt)


class LongResponse(BoundedResponse):
    """A response of any length, whose pieces have `LEAST_PIECE` bytes on average or more."""

    most_bytes = math.inf
    least_piece = LEAST_PIECE
