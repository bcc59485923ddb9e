"""Spans are handed over by a thread, and whoever makes them never waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from svc.telemetry.handing import BLOCK, Handing
from svc.telemetry.spans import Record

WAIT_S = 20.0


class Taking:
    """Takes blocks as often as it is let."""

    def __init__(self, room: bool = True) -> None:
        self.room, self.spans = room, list[Record]()
        self.refused = threading.Event()

    def __call__(self, block: Sequence[Record]) -> bool:
        assert len(block) <= BLOCK
        if self.room:
            self.spans += block
        else:
            self.refused.set()
        return self.room


class Numbered(tuple[int]):
    """A span of which nothing is known but its number."""

    def record(self) -> Record:
        return tuple(self)


def records(count: int) -> list[Numbered]:
    return [Numbered((number,)) for number in range(count)]


def test_all_spans_are_handed_over_in_their_order() -> None:
    taking = Taking()
    handing = Handing(taking)
    for record in records(10 * BLOCK + 1):
        handing.take(record)
    handing.close()
    assert taking.spans == records(10 * BLOCK + 1)


def test_a_block_without_room_is_offered_again() -> None:
    taking = Taking(room=False)
    handing = Handing(taking)
    for record in records(BLOCK + 1):
        handing.take(record)
    assert taking.refused.wait(WAIT_S)
    taking.room = True
    handing.close()
    assert taking.spans == records(BLOCK + 1)


def test_what_comes_while_the_queue_is_full_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taking = Taking(room=False)
    handing = Handing(taking, waiting=10)
    for record in records(1_000):
        handing.take(record)
    assert taking.refused.wait(WAIT_S)
    taking.room = True
    handing.close()
    assert taking.spans == records(10)
    assert "990 spans of traces could not be handed over, and are lost" in caplog.text


def test_a_thread_that_makes_spans_never_waits_for_one_that_hands_them_over() -> None:
    going_on, hanging = threading.Event(), threading.Event()

    def hang(block: Sequence[Record]) -> bool:
        hanging.set()
        return going_on.wait(WAIT_S)

    handing = Handing(hang, waiting=10)
    handing.take(Numbered((0,)))
    assert hanging.wait(WAIT_S)
    began = time.monotonic()
    for record in records(1_000):
        handing.take(record)
    assert time.monotonic() - began < WAIT_S / 2
    going_on.set()
    handing.close()


def test_a_span_that_cannot_be_sent_is_lost_and_no_other_of_its_block(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken: list[Record] = []

    def send(block: Sequence[Record]) -> bool:
        if (0,) in block:
            raise ValueError("the secret plan")
        taken.extend(block)
        return True

    handing = Handing(send)
    for record in records(BLOCK + 1):
        handing.take(record)
    handing.close()
    assert taken == records(BLOCK + 1)[1:]
    assert "1 spans of traces could not be handed over" in caplog.text
    assert "secret" not in caplog.text


def test_the_end_waits_a_short_time_where_nobody_takes_what_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handing = Handing(Taking(room=False))
    handing.take(Numbered((0,)))
    began = time.monotonic()
    handing.close()
    assert time.monotonic() - began < WAIT_S / 2
    assert "1 spans of traces could not be handed over" in caplog.text
