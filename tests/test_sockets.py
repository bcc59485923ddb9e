from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.sockets import GATHERED_BYTES, EagerSocket

MUCH = bytes(range(256)) * 40_000  # more than a socket's buffers hold


@pytest.fixture(name="pair")
def _pair() -> Iterator[tuple[EagerSocket, socket.socket]]:
    """One of ours, with a limit of 10 s, and its peer."""
    ours, peer = socket.socketpair()
    ours.settimeout(10.0)
    peer.settimeout(10.0)
    eager = EagerSocket(ours)
    with eager, peer:
        yield eager, peer


@contextlib.contextmanager
def later(act: Callable[..., object], *args: object) -> Iterator[None]:
    """`act(*args)` a moment after the block has begun; ended with it."""
    timer = threading.Timer(0.05, act, args)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(1 << 20):
        data += piece
    return data


def test_it_takes_socket_and_limit_over() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.settimeout(3.0)
        number = ours.fileno()
        with EagerSocket(ours) as eager:
            assert (eager.fileno(), ours.fileno()) == (number, -1)
            assert eager.gettimeout() == 3.0
            assert eager.family == socket.AF_UNIX
            eager.setblocking(True)
            assert eager.gettimeout() is None
            eager.setblocking(False)
            assert eager.gettimeout() == 0.0


def test_what_is_there_is_read_and_what_is_not_is_waited_for(
    pair: tuple[EagerSocket, socket.socket],
) -> None:
    eager, peer = pair
    peer.sendall(b"first")
    assert eager.recv(100) == b"first"
    with later(peer.sendall, b"second"):
        assert eager.recv(100) == b"second"
    with later(peer.sendall, b"third\n"), eager.makefile("rb") as lines:
        assert lines.readline() == b"third\n"
    with later(peer.close):
        assert eager.recv(100) == b""


def test_without_time_nothing_is_waited_for(pair: tuple[EagerSocket, socket.socket]) -> None:
    eager, _ = pair
    eager.setblocking(False)
    with pytest.raises(BlockingIOError):
        eager.recv(100)
    with pytest.raises(BlockingIOError):
        eager.sendall(MUCH)


def test_a_read_ends_with_its_limit(pair: tuple[EagerSocket, socket.socket]) -> None:
    eager, _ = pair
    eager.settimeout(0.1)
    with pytest.raises(TimeoutError):
        eager.recv(1)


def test_a_peer_that_takes_a_little_now_and_then_does_not_lift_the_limit(
    pair: tuple[EagerSocket, socket.socket],
) -> None:
    eager, peer = pair
    ended = threading.Event()

    def sip() -> None:
        while not ended.wait(0.02):
            peer.recv(1000)

    sipping = threading.Thread(target=sip)
    sipping.start()
    eager.settimeout(0.3)
    with pytest.raises(TimeoutError):
        eager.sendall(MUCH)
    ended.set()
    sipping.join()


def test_a_slow_peer_gets_everything(pair: tuple[EagerSocket, socket.socket]) -> None:
    eager, peer = pair
    sender = threading.Thread(target=lambda: (eager.sendall(MUCH), eager.close()))
    sender.start()
    assert read_all(peer) == MUCH
    sender.join()


@pytest.mark.parametrize("reads", [True, False])
def test_a_shutdown_by_another_thread_wakes_who_waits(
    pair: tuple[EagerSocket, socket.socket], reads: bool
) -> None:
    eager, _ = pair
    with later(eager.shutdown, socket.SHUT_RDWR):
        if reads:
            assert eager.recv(1) == b""
        else:
            with pytest.raises(BrokenPipeError):
                eager.sendall(MUCH)


def test_what_is_gathered_leaves_in_one_piece(pair: tuple[EagerSocket, socket.socket]) -> None:
    eager, peer = pair
    peer.setblocking(False)
    with eager.gathering():
        eager.sendall(b"head ")
        eager.sendall(b"body")
        with pytest.raises(BlockingIOError):
            peer.recv(100)
        eager.send(b"interim ")  # of a caller who means now
    eager.sendall(b" after")
    assert peer.recv(100) == b"interim head body after"


def test_what_is_large_or_a_file_leaves_after_what_was_gathered(
    pair: tuple[EagerSocket, socket.socket], tmp_path: Path
) -> None:
    eager, peer = pair
    large = b"x" * GATHERED_BYTES
    (tmp_path / "file").write_bytes(b" file ")

    def send() -> None:
        with eager.gathering(), (tmp_path / "file").open("rb") as file:
            eager.sendall(b"head ")
            eager.sendall(large)
            eager.sendall(b" then")
            eager.sendfile(file)
            eager.sendall(b"end")
        eager.close()

    sender = threading.Thread(target=send)
    sender.start()
    assert read_all(peer) == b"head " + large + b" then file end"
    sender.join()


def test_a_block_that_fails_sends_nothing_more(pair: tuple[EagerSocket, socket.socket]) -> None:
    eager, peer = pair
    with pytest.raises(KeyError), eager.gathering():
        eager.sendall(b"half")
        raise KeyError
    eager.sendall(b"whole")
    eager.close()
    assert read_all(peer) == b"whole"
