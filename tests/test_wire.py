"""How an answer is read, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from svc.limits import REPLY_READS_UNCOUNTED
from svc.wire import SMALL_PIECES, BoundedResponse

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
# Of a drip of one byte a millisecond fifty come in a rest.
DRIPPED, EVERY_S = 1_500, 0.001


class Counted:
    """A socket that counts how often it is read."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self.reads = sock, 0

    def makefile(self, *args: Any, **kwargs: Any) -> Any:
        file, counted = self._sock.makefile(*args, **kwargs), self
        read = file.raw.readinto

        class Raw:
            def readinto(self, buffer: Any) -> int | None:
                counted.reads += 1
                found: int | None = read(buffer)
                return found

            def close(self) -> None:
                file.close()

        class Detachable:
            def detach(self) -> Raw:
                return Raw()

        return Detachable()


@contextlib.contextmanager
def reply(pieces: Iterator[bytes], every_s: float) -> Iterator[Counted]:
    """A socket at whose other end the pieces are sent one after the other."""
    near, far = socket.socketpair()

    def send() -> None:
        with contextlib.suppress(OSError):
            for piece in pieces:
                far.sendall(piece)
                time.sleep(every_s)

    sender = threading.Thread(target=send)
    sender.start()
    with near, far:
        yield Counted(near)
        sender.join()


def test_a_reply_that_comes_byte_by_byte_is_read_in_larger_pieces() -> None:
    drip = (b"x" for _ in range(DRIPPED))
    with reply(iter([HEAD % DRIPPED, *drip]), EVERY_S) as sock:
        response = BoundedResponse(sock)
        response.begin()
        assert len(response.read()) == DRIPPED
    assert sock.reads < SMALL_PIECES + DRIPPED / 10


def test_each_read_beyond_those_that_any_reply_may_have_is_told_of() -> None:
    told: list[None] = []

    class Told(BoundedResponse):
        @staticmethod
        def more_pieces() -> None:
            told.append(None)

    pieces = 40
    with reply(iter([HEAD % pieces, *(b"x" for _ in range(pieces))]), 10 * EVERY_S) as sock:
        response = Told(sock)  # type: ignore[arg-type]
        response.begin()
        response.read()
    assert len(told) == sock.reads - REPLY_READS_UNCOUNTED > 0
