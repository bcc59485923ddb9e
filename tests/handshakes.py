"""A server whose TLS handshakes never end, and cost its clients a processor."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# A record with a HelloRequest, which a client skips in a handshake (RFC 5246, section 7.4.1.1).
_NOTHING = b"\x16\x03\x03\x00\x04" + bytes(4)


@contextmanager
def endless_handshakes() -> Iterator[int]:
    """The port of the server, which sends such records for as long as they are read."""
    over = threading.Event()

    def answer(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.recv(65_536)
            while not over.is_set():
                peer.sendall(4_096 * _NOTHING)

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                peer.settimeout(10)
                threading.Thread(target=answer, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            # Closed alone, it would not wake the thread that accepts.
            listener.shutdown(socket.SHUT_RDWR)
