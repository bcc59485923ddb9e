"""Callers who leave before they have their answer."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import cast

import pytest

from svc.server.departures import LOOK_S, Departures
from tests.clock import Clock

WAIT_S = 30.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


Pair = tuple[socket.socket, socket.socket]


def test_what_a_caller_wanted_is_stopped_once_it_has_left(pair: Pair) -> None:
    ours, theirs = pair
    clock, told, stopped = Clock(), list[str](), threading.Event()
    departures = Departures(clock)
    with departures.awaited(ours) as departure:
        departure.call(lambda: told.append("stopped"))
        departure.call(stopped.set)
        # What it sends beside is the next request, and no farewell.
        theirs.sendall(b"GET / HTTP/1.1")
        departures.look()
        assert told == []
        theirs.shutdown(socket.SHUT_WR)
        departures.look()
        assert told == []
        clock.now += LOOK_S
        departures.look()
        assert stopped.wait(WAIT_S) and told == ["stopped"]
        departure.call(lambda: told.append("at once"))
        assert told == ["stopped", "at once"]


def test_the_polling_thread_does_not_wait_while_what_callers_wanted_is_stopped(pair: Pair) -> None:
    ours, theirs = pair
    clock, may, threads = Clock(), threading.Event(), list[threading.Thread]()

    def stop() -> None:
        threads.append(threading.current_thread())
        may.wait(WAIT_S)

    departures = Departures(clock)
    with departures.awaited(ours) as departure:
        departure.call(stop)
        theirs.close()
        departures.look()
        clock.now += LOOK_S
        departures.look()
        may.set()
    while not threads:
        time.sleep(0.01)
    assert len(threads) == 1 and threads[0] is not threading.current_thread()


def test_who_leaves_with_its_answer_stops_nothing(pair: Pair) -> None:
    ours, theirs = pair
    departures, told = Departures(Clock()), list[str]()
    with departures.awaited(ours) as departure:
        departure.call(lambda: told.append("stopped"))
    theirs.close()
    departures.look()
    assert told == []


def test_a_connection_that_was_closed_here_is_not_looked_at(pair: Pair) -> None:
    ours, theirs = pair
    departures = Departures(Clock())
    with departures.awaited(ours):
        ours.close()
        theirs.close()
        departures.look()


class Closed:
    """A connection that is closed already."""

    def fileno(self) -> int:
        return -1


def test_a_look_is_taken_while_requests_come_and_go() -> None:
    """A collection of garbage lets other threads go on; a worker ended by what they changed."""
    clock = Clock()
    departures = Departures(clock)
    clock.now += LOOK_S
    requests = [ExitStack() for _ in range(100)]

    def come_and_go(*_: object) -> None:
        requests.append(ExitStack())
        requests[-1].enter_context(departures.awaited(cast(socket.socket, Closed())))
        requests.pop(0).close()

    for _ in range(100):
        come_and_go()
    gc.callbacks.append(come_and_go)
    gc.set_threshold(1)
    try:
        departures.look()
    finally:
        gc.set_threshold(700, 10, 10)
        gc.callbacks.remove(come_and_go)
