from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from svc.server.worker import NO_FILES, Worker
from svc.sharing import WorkerLoads


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


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(1, os.getpid(), [], None, 30, Config(), logging.getLogger("test"))
    made.poller = selectors.DefaultSelector()
    made.join(WorkerLoads())
    yield made
    made.poller.close()
    made.tmp.close()


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
