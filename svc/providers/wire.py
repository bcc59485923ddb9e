"""Bounds what a reply may be made of on its way: bytes, lines of its framing, and pieces.

The standard library reads interim answers (`100 Continue`), chunks and trailers for as long as they
come. A provider that lies would so keep a thread at work for the whole time of a call.
"""

from __future__ import annotations

import http.client
import io
from typing import Any

from svc import limits

# A reply of any length may come in chunks and pieces of so many bytes on average, beside those that
# any reply may have.
LEAST_PIECE = 256


class TooLong(Exception):
    """The reply has more bytes, more lines or more pieces than are read of one."""


class _Pieces(io.RawIOBase):
    """A socket's bytes, of which so many come in so many pieces at most."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self._pieces = limits.REPLY_PIECES
        self._bytes = limits.REPLY_BYTES + limits.REPLY_FRAMING_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        self._pieces -= 1
        self._bytes -= size or 0
        if self._pieces < 0 or self._bytes < 0:
            raise TooLong
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Framed(io.BufferedReader):
    """The same, with a bound on what is read by lines: heads, the sizes of chunks, trailers."""

    _lines = limits.REPLY_LINES
    _line_bytes = limits.REPLY_FRAMING_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self._lines -= 1
        self._line_bytes -= len(line)
        if self._lines < 0 or self._line_bytes < 0:
            raise TooLong
        return line


class _ManyPieces(_Pieces):
    """The same for any number of bytes: pieces have so many on average."""

    def __init__(self, raw: Any) -> None:
        super().__init__(raw)
        self.taken = 0

    def readinto(self, buffer: Any) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        self.taken += size or 0
        self._pieces -= 1
        if self._pieces + self.taken // LEAST_PIECE < 0:
            raise TooLong
        return size


class _LongFramed(io.BufferedReader):
    """The same, with a bound on lines that grows with what has come."""

    _lines = limits.REPLY_LINES

    def __init__(self, raw: _ManyPieces) -> None:
        super().__init__(raw)
        self._pieces = raw

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self._lines -= 1
        if self._lines + self._pieces.taken // LEAST_PIECE < 0:
            raise TooLong
        return line


class BoundedResponse(http.client.HTTPResponse):
    """A response that is read with these bounds; its connection is closed once they are passed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fp = _Framed(_Pieces(self.fp.detach()))


class LongResponse(http.client.HTTPResponse):
    """A response of any length that does not come in crumbs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fp = _LongFramed(_ManyPieces(self.fp.detach()))
