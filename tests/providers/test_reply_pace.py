"""The rate of lines and pieces, most of it on a clock of the test."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from svc import limits
from svc.providers.reply_pace import ReplyPace
from svc.providers.watchdog import Watchdog
from tests.clock import Clock

RATE = limits.REPLY_LINES_A_SECOND


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def pace(clock: Clock) -> ReplyPace:
    return ReplyPace(RATE, clock, clock.sleep)


def wanted() -> bool:
    return True


def unwanted() -> bool:
    return False


def test_the_lines_of_replies_that_are_wanted_are_read_at_one_rate(
    pace: ReplyPace, clock: Clock
) -> None:
    for _ in range(101):
        pace.wait(RATE // 10, "liar", "provider", wanted)
    assert clock.now == pytest.approx(10.0)


def test_a_reply_that_is_no_longer_wanted_takes_no_time_of_others(
    pace: ReplyPace, clock: Clock
) -> None:
    pace.wait(RATE, "liar", "provider", wanted)
    for _ in range(100):
        pace.wait(RATE, "liar", "provider", unwanted)
    assert clock.now == 0
    pace.wait(RATE, "liar", "provider", wanted)
    assert clock.now == pytest.approx(1.0)


def test_who_reads_little_has_an_even_share_beside_who_reads_much(
    pace: ReplyPace, clock: Clock
) -> None:
    pace.wait(60 * RATE, "liar", "provider", wanted)
    pace.wait(RATE, "honest", "provider", wanted)
    assert clock.now == 0
    pace.wait(RATE, "honest", "provider", wanted)
    assert clock.now == pytest.approx(2.0)


def test_who_reads_from_many_providers_has_one_share_beside_others(
    pace: ReplyPace, clock: Clock
) -> None:
    for number in range(8):
        pace.wait(60 * RATE, "liar", f"provider {number}", wanted)
    pace.wait(RATE, "honest", "provider 0", wanted)
    pace.wait(RATE, "honest", "provider 0", wanted)
    assert clock.now == pytest.approx(2.0)


@pytest.mark.parametrize("callers", [1, 2, 4])
def test_many_who_read_have_the_rate_together(pace: ReplyPace, clock: Clock, callers: int) -> None:
    for _ in range(100):
        for pair in range(4):
            pace.wait(RATE // 10, pair % callers, f"provider {pair}", wanted)
    assert 390 * (RATE // 10) / RATE <= clock.now <= 410 * (RATE // 10) / RATE


def test_a_reply_is_cut_off_when_others_that_came_before_it_were(clock: Clock) -> None:
    """They leave so little to wait for that its like have been forgotten."""
    waits, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def sleep(_: float) -> None:
        waits.set()
        goes_on.wait(30)

    pace = ReplyPace(RATE, clock, sleep)

    def late() -> None:
        pace.wait(RATE, "liar", "provider", lambda: not goes_on.is_set())
        ended.set()

    def begin_late() -> bool:
        threading.Thread(target=late).start()
        waits.wait(30)
        return False

    def second() -> bool:
        pace.wait(RATE, "liar", "provider", begin_late)
        return False

    pace.wait(RATE, "liar", "provider", wanted)
    pace.wait(RATE, "liar", "provider", second)
    clock.now = 2.5
    pace.wait(1, "honest", "provider", wanted)
    goes_on.set()
    assert ended.wait(30)


def test_a_wait_ends_when_the_call_does(pace: ReplyPace, clock: Clock) -> None:
    pace.wait(60 * RATE, "liar", "provider", wanted)
    pace.wait(1, "liar", "provider", lambda: clock.now < 0.15, until=0.15)
    assert clock.now == pytest.approx(0.15)


def test_two_clients_of_a_process_have_one_rate_together() -> None:
    """The engine that asks challengers has a client of its own."""
    first, second = Watchdog(), Watchdog()
    began = time.monotonic()
    for watchdog in (first, second):
        with watchdog.watching(30) as watch:
            assert watch.take_lines(RATE // 2)
        watchdog.close()
    assert time.monotonic() - began >= 0.45


def test_the_many_lines_of_a_reply_are_left_unread_once_its_call_has_ended() -> None:
    """They have come already, so that the end of the connection does not end them."""
    watchdog = Watchdog()
    with watchdog.watching(30) as watch:
        assert watch.take_lines(1)
        watch.cancel()
        assert not watch.take_lines(1)
    watchdog.close()


def test_the_pieces_of_all_replies_of_a_process_are_read_at_one_rate() -> None:
    """Three hundred that dripped had a worker awake 6,000 times a second."""
    watchdog, began = Watchdog(), time.monotonic()

    def read(_: int) -> None:
        with watchdog.watching(30) as watch:
            for _ in range(20):
                watch.next_piece()

    with ThreadPoolExecutor(40) as threads:
        list(threads.map(read, range(40)))
    watchdog.close()
    assert time.monotonic() - began >= 0.9 * 800 / limits.REPLY_READS_A_SECOND


def test_a_piece_is_not_waited_for_once_its_call_has_ended() -> None:
    watchdog = Watchdog()
    with watchdog.watching(30) as watch:
        watch.next_piece()
        watch.cancel()
        with pytest.raises(TimeoutError):
            watch.next_piece()
    watchdog.close()
