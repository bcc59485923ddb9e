"""Signals between two steps."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import pytest

from svc.batch.interruptions import Interruptions
from svc.batch.workers import Workers


class Stopped(Exception):
    """What the handler of this test raises."""


def stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


def send() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_waits_for_the_next_check() -> None:
    woken: list[str] = []
    with Interruptions(lambda: woken.append("woken")) as interruptions:
        interruptions.check()
        send()
        assert woken == ["woken"]
        with pytest.raises(Stopped, match="15"):
            interruptions.check()


def test_the_second_signal_does_not_wait() -> None:
    with Interruptions(lambda: None):
        send()
        with pytest.raises(Stopped):
            send()


def test_after_the_block_all_is_as_it_was() -> None:
    with Interruptions(lambda: None):
        pass
    assert signal.getsignal(signal.SIGTERM) is stop


def test_a_signal_that_is_left_to_the_system_stays_so() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with Interruptions(lambda: None) as interruptions:
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        send()
        interruptions.check()


def test_results_go_on_until_a_step_is_done_and_then_no_further() -> None:
    counted = []
    with pytest.raises(Stopped), Workers(iter(range(99)), str, 2, lambda: None) as results:
        for result in results:
            if result == "7":
                send()
            counted.append(result)
    assert counted == [str(number) for number in range(8)]


def test_a_signal_wakes_who_waits_for_a_result() -> None:
    never = threading.Event()

    def work(item: int) -> int:
        if item == 1:
            send()
            never.wait()
        return item

    with pytest.raises(Stopped), Workers(iter(range(2)), work, 1, never.set) as results:
        assert list(results) == [0]
