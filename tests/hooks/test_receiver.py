"""The tests' receiver of hooks records only requests that arrived whole."""

from __future__ import annotations

import socket

import pytest

from tests.hooks.receiver import Receiver


@pytest.mark.parametrize(("body", "count"), [(b"{}", 1), (b"{", 0), (b"", 0)])
def test_a_request_that_was_cut_off_is_not_noted(body: bytes, count: int) -> None:
    with Receiver() as receiver, socket.create_connection(("127.0.0.1", receiver.port)) as sender:
        sender.sendall(b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n" + body)
        sender.shutdown(socket.SHUT_WR)
        while sender.recv(1_000):
            pass
        assert len(receiver.journal) == count
