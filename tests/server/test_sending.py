"""Responses that leave in one piece."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from svc.server.sending import GATHERED_BYTES, ResponseSocket, Waiting
from tests.store.holding import until

Ends = tuple[ResponseSocket, socket.socket]


class Counting(ResponseSocket):
    """Counts the calls that send."""

    calls = 0

    def send(self, *args: object) -> int:
        type(self).calls += 1
        return super().send(*args)  # type: ignore[arg-type]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ResponseSocket(ours) as sending, theirs:
        yield sending, theirs


def test_head_and_body_leave_in_one_call() -> None:
    ours, theirs = socket.socketpair()
    with Counting(ours) as sending, theirs:
        with sending.gathering(1.0):
            sending.sendall(b"head ")
            sending.sendall(b"body")
        assert theirs.recv(100) == b"head body"
        assert Counting.calls == 1


@pytest.mark.parametrize("timeout_s", [0.0, 5.0, None])
def test_a_time_limit_is_not_told_to_the_system_before_something_waits(
    ends: Ends, timeout_s: float | None
) -> None:
    sending, theirs = ends
    theirs.sendall(b"here already")
    sending.settimeout(timeout_s)
    assert not os.get_blocking(sending.fileno())
    assert sending.gettimeout() == timeout_s
    assert sending.recv(100) == b"here already"
    sending.sendall(b"answer")
    assert theirs.recv(100) == b"answer"
    assert not os.get_blocking(sending.fileno())


def test_nothing_is_waited_for_without_time_and_not_beyond_a_limit(ends: Ends) -> None:
    sending, _ = ends
    sending.setblocking(False)
    with pytest.raises(BlockingIOError):
        sending.recv(1)
    sending.settimeout(0.01)
    with pytest.raises(TimeoutError):
        sending.recv(1)
    with pytest.raises(TimeoutError):
        sending.sendall(bytes(10_000_000))


@pytest.mark.parametrize("timeout_s", [5.0, None])
def test_what_comes_within_the_limit_is_waited_for(ends: Ends, timeout_s: float | None) -> None:
    sending, theirs = ends
    sending.settimeout(timeout_s)
    sender = threading.Timer(0.05, theirs.sendall, [b"late"])
    sender.start()
    assert sending.recv(100) == b"late"
    sender.join()


def test_nothing_leaves_of_a_response_that_failed(ends: Ends) -> None:
    sending, theirs = ends
    with pytest.raises(KeyError), sending.gathering(1.0):
        sending.sendall(b"head")
        raise KeyError
    sending.sendall(b"after")
    assert theirs.recv(100) == b"after"


def test_a_response_that_is_held_leaves_when_it_is_let_go_and_the_next_at_once(ends: Ends) -> None:
    sending, theirs = ends
    with sending.gathering(1.0):
        sending.hold()
        sending.sendall(b"late")
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(9)
    assert sending.let_go()
    assert theirs.recv(9) == b"late"
    with sending.gathering(1.0):
        sending.sendall(b"at once")
    assert theirs.recv(9) == b"at once"


def test_a_response_that_is_held_is_lost_to_a_caller_who_has_gone(ends: Ends) -> None:
    sending, theirs = ends
    with sending.gathering(1.0):
        sending.hold()
        sending.sendall(b"late")
    theirs.close()
    assert not sending.let_go()


def test_an_empty_response_sends_nothing(ends: Ends) -> None:
    sending, theirs = ends
    with sending.gathering(1.0):
        pass
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


@pytest.mark.parametrize("timeout_s", [0.0, 5.0, None])
def test_a_response_larger_than_the_systems_buffers_arrives_whole(
    ends: Ends, timeout_s: float | None
) -> None:
    sending, theirs = ends
    sending.settimeout(timeout_s)
    body = bytes(range(256)) * 20_000
    arrived = bytearray()

    def read() -> None:
        while len(arrived) < len(body):
            arrived.extend(theirs.recv(GATHERED_BYTES))

    reader = threading.Thread(target=read)
    reader.start()
    with sending.gathering(10.0):
        for start in range(0, len(body), 10_000):
            sending.sendall(body[start : start + 10_000])
    reader.join()
    assert arrived == body


def test_a_caller_that_does_not_read_is_given_up_after_the_limit(ends: Ends) -> None:
    sending, _ = ends
    sending.setblocking(False)
    with pytest.raises(TimeoutError), sending.gathering(0.05):
        sending.sendall(b"x" * 10_000_000)


def test_the_time_limit_of_the_socket_it_takes_over_stays() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(3.0)
    with ResponseSocket(ours) as sending, theirs:
        assert sending.gettimeout() == 3.0


def held_up(waiting: Waiting, size: int) -> tuple[threading.Thread, socket.socket, list[OSError]]:
    """A thread that sends `size` bytes to somebody who does not read, and how it ended."""
    ours, theirs = socket.socketpair()
    ended: list[OSError] = []

    def send() -> None:
        try:
            with ResponseSocket(ours, waiting) as sending, sending.gathering(30.0):
                sending.sendall(bytes(size))
        except OSError as error:
            ended.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    return thread, theirs, ended


def test_beyond_the_bound_of_all_responses_who_took_in_nothing_for_longest_is_cut() -> None:
    size = 4_000_000
    waiting = Waiting(2 * size)
    threads = []
    for number in range(2):
        threads.append(held_up(waiting, size))
        until(lambda number=number: len(waiting._left) == number + 1)  # type: ignore[misc]
    first, second = threads
    # The first one reads a little, so that the second is the slowest.
    first[1].recv(1_000_000, socket.MSG_WAITALL)
    until(lambda: list(waiting._left.values())[-1] < next(iter(waiting._left.values())))
    third = held_up(waiting, size)
    second[0].join(30)
    assert second[2] and not first[2] and not third[2]
    for thread, theirs, _ in (first, third):
        while thread.is_alive():
            theirs.recv(1_000_000)
        thread.join()
    assert waiting._total == 0 and not first[2] and not third[2]
    for _, theirs, _ in (first, second, third):
        theirs.close()
