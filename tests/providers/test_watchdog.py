"""The watchdog: what is left of a call that was cut off."""

import socket
from contextlib import closing

import pytest

from svc.providers.watchdog import Watchdog

LONG = 30.0  # seconds: a limit that is not meant to be reached


@pytest.fixture
def ends():
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as own:
            peer, _ = listener.accept()
            with peer:
                yield own, peer


def test_what_has_come_for_a_call_that_is_cut_off_is_not_read(ends):
    own, peer = ends
    peer.sendall(bytes(100_000))
    own.recv(1, socket.MSG_PEEK)
    with closing(Watchdog()) as watchdog, watchdog.watching(LONG) as watch:
        watch.follow(own)
        watch.cancel()
        assert own.recv(65_536) == b""


def test_nor_is_what_came_before_the_peer_closed_the_connection(ends):
    own, peer = ends
    peer.sendall(bytes(100_000))
    peer.close()
    own.recv(1, socket.MSG_PEEK)
    with closing(Watchdog()) as watchdog, watchdog.watching(LONG) as watch:
        watch.follow(own)
        watch.expire()
        assert own.recv(65_536) == b""
