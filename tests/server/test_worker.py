from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config

from svc.server.balance import OFFER_S, ConnectionBalancer
from svc.server.worker import NO_FILES, UNWANTED_BYTES, Worker


class Listener:
    """A listening socket that has a connection and no file for it."""

    def __init__(self, number: int) -> None:
        self.number, self.asked = number, 0
        self._sock = socket.socket()

    def accept(self) -> None:
        self.asked += 1
        raise OSError(self.number, "no file")

    def setblocking(self, blocking: bool) -> None:
        self._sock.setblocking(blocking)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()


class Neighbour:
    """Another worker: how many connections it has, and how often it was asked for that."""

    def __init__(self, load: int | None = None) -> None:
        self.load, self.asked = load, 0

    def publish(self, load: int) -> None:
        """What this worker has is nothing to the other one."""

    def least_of_others(self) -> int | None:
        self.asked += 1
        return self.load


class Threads:
    """A pool whose threads are all busy: it takes connections and handles none."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def submit(self, handle: Callable[[Any], object], conn: Any) -> Future[object]:
        self.waiting.append(conn)
        return Future()


@pytest.fixture
def neighbour() -> Neighbour:
    return Neighbour()


@pytest.fixture
def worker(neighbour: Neighbour) -> Iterator[Worker]:
    made = Worker(1, os.getpid(), [], None, 30, Config(), logging.getLogger("test"))
    made.poller = selectors.DefaultSelector()
    made.tpool = Threads()
    made.join(neighbour)
    yield made
    for conn in made.tpool.waiting:
        conn.close()
    made.poller.close()
    made.tmp.close()


@pytest.fixture
def listener(worker: Worker) -> Iterator[socket.socket]:
    """A socket that the worker accepts from."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        worker.sockets = [made]
        worker.set_accept_enabled(True)
        yield made


def turn(worker: Worker, timeout: float = 10.0) -> None:
    """One turn of the polling thread's loop; it waits `timeout` seconds where nothing happens."""
    worker.set_accept_enabled(True)
    worker.wait_for_and_dispatch_events(timeout)
    worker.murder_pending()


def test_a_connection_that_is_left_to_another_worker_delays_none_of_ours(
    worker: Worker, neighbour: Neighbour, listener: socket.socket
) -> None:
    worker.nr_conns, neighbour.load = 1, 0
    ours, peer = socket.socketpair()
    with ours, peer, socket.create_connection(listener.getsockname()):
        read: list[bytes] = []
        worker.poller.register(ours, selectors.EVENT_READ, lambda sock: read.append(sock.recv(9)))
        turn(worker)
        # It looked once and did not wait.
        assert (worker.nr_conns, neighbour.asked) == (1, 1)
        peer.sendall(b"hello")
        turn(worker)
        assert read == [b"hello"]


def test_a_connection_that_no_other_worker_takes_is_accepted_after_a_moment(
    worker: Worker, neighbour: Neighbour, listener: socket.socket
) -> None:
    worker.nr_conns, neighbour.load = 1, 0
    started = time.monotonic()
    with socket.create_connection(listener.getsockname()):
        while worker.nr_conns == 1:
            turn(worker)
    assert time.monotonic() - started >= OFFER_S
    assert neighbour.asked > 1


def test_a_connection_is_accepted_at_once_when_no_other_worker_has_fewer(
    worker: Worker, neighbour: Neighbour, listener: socket.socket
) -> None:
    for load in (None, 1):
        worker.nr_conns, neighbour.load = 1, load
        with socket.create_connection(listener.getsockname()):
            turn(worker)
            assert worker.nr_conns == 2


def test_a_connection_that_was_taken_leaves_the_next_one_its_whole_time(
    worker: Worker, neighbour: Neighbour, listener: socket.socket
) -> None:
    worker.nr_conns, neighbour.load = 1, 0
    clock = iter((100.0, 200.0))
    worker._balancer = ConnectionBalancer(neighbour.least_of_others, lambda: next(clock))
    with socket.create_connection(listener.getsockname()):
        turn(worker)
    listener.accept()[0].close()  # as the other worker would
    while not worker._accepting:
        turn(worker, timeout=0)
    with socket.create_connection(listener.getsockname()):
        turn(worker)
        assert worker.nr_conns == 1


@pytest.mark.parametrize("number", NO_FILES)
def test_a_connection_without_a_file_is_left_in_the_queue_for_a_while(
    worker: Worker, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener(number)
    worker.sockets = [listener]
    worker.set_accept_enabled(True)
    for _ in range(5):
        worker.accept(listener)
        worker.murder_pending()
    assert [record.args for record in caplog.records] == [(errno.errorcode[number],)]
    worker.set_accept_enabled(True)
    assert worker.poller.get_map() == {}  # it does not turn in circles until there is a file
    listener.close()


def test_a_worker_that_stops_waits_for_heads_no_longer_than_for_requests(worker: Worker) -> None:
    heads = [SimpleNamespace(timeout=timeout) for timeout in (3.0, 90.0)]
    worker.pending_conns.extend(heads)
    worker._cap_keepalive(5.0)
    assert [conn.timeout for conn in heads] == [3.0, 5.0]


def test_every_other_error_of_accept_is_raised(worker: Worker) -> None:
    listener = Listener(errno.EBADF)
    with pytest.raises(OSError, match="no file"):
        worker.accept(listener)
    listener.close()


class GivenUp:
    """A connection whose other end the system no longer reaches."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv_into(self, buffer: bytearray, size: int, flags: int) -> int:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")


def ending(worker: Worker, sock: Any, still_sends: bool) -> list[bool]:
    """Have the worker end its only connection; what is returned is no longer empty once it has."""
    closed: list[bool] = []
    conn = SimpleNamespace(
        sock=sock,
        still_sends=still_sends,
        holds=False,
        close=lambda: closed.append(True),
        timeout=0.0,
    )
    worker.nr_conns, worker.sockets, worker._requests = 1, [], 1
    done: Future[object] = Future()
    done.set_result(False)
    worker.finish_request(conn, done)
    return closed


@pytest.mark.parametrize("still_sends", [False, True])
def test_a_connection_that_the_system_gives_up_ends_alone(
    worker: Worker, still_sends: bool
) -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        closed = ending(worker, GivenUp(ours), still_sends)
        peer.sendall(b"x")
        turn(worker)
        assert closed == [True] and worker.nr_conns == 0


class Flood:
    """A connection whose caller sends without an end; it counts what is read."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self.bytes_read = sock, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv_into(self, buffer: bytearray, size: int, flags: int) -> int:
        self.bytes_read += size
        return size


@pytest.mark.parametrize("still_sends", [False, True])
def test_a_connection_that_ends_is_read_up_to_a_limit(worker: Worker, still_sends: bool) -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        flood = Flood(ours)
        closed = ending(worker, flood, still_sends)
        peer.sendall(b"x")
        while not closed:
            assert flood.bytes_read < UNWANTED_BYTES
            turn(worker)
        assert flood.bytes_read == UNWANTED_BYTES
