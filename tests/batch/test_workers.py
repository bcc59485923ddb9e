from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from svc.batch.workers import AHEAD, LATE_S, Workers

WAIT_S = 10.0  # seconds, only ever reached by a failing test


def nothing() -> None:
    pass


def test_results_come_in_the_order_of_the_items() -> None:
    later = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert later.wait(WAIT_S)
        elif number == 5:
            later.set()
        return number * 2

    with Workers(iter(range(10)), work, 3, nothing) as results:
        assert list(results) == [number * 2 for number in range(10)]


def test_as_many_items_as_there_are_threads_are_under_way_at_once() -> None:
    together = threading.Barrier(4, timeout=WAIT_S)
    with Workers(iter(range(8)), lambda _: together.wait(), 4, nothing) as results:
        assert len(list(results)) == 8


def test_the_input_is_not_read_further_than_a_window_ahead() -> None:
    first, read = threading.Event(), itertools.count()
    full = threading.Event()

    def items() -> Iterator[int]:
        for number in range(1_000):
            next(read)
            if number == 2 * AHEAD - 1:
                full.set()
            yield number

    def work(number: int) -> int:
        if number == 0:
            assert first.wait(WAIT_S)
        return number

    with Workers(items(), work, 2, nothing) as results:
        assert full.wait(WAIT_S)
        assert next(read) == 2 * AHEAD
        first.set()
        assert list(results) == list(range(1_000))


def test_an_empty_input_has_no_results() -> None:
    with Workers(iter(()), str, 3, nothing) as results:
        assert list(results) == []


def test_what_the_work_raises_reaches_who_iterates_after_the_results_before_it() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    seen = []
    with pytest.raises(ValueError, match="three"):
        with Workers(iter(range(9)), work, 2, nothing) as results:
            for result in results:
                seen.append(result)
    assert seen == [0, 1, 2]


def test_what_reading_the_input_raises_reaches_who_iterates() -> None:
    def items() -> Iterator[int]:
        yield 0
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        with Workers(items(), str, 2, nothing) as results:
            list(results)


def test_leaving_the_block_cuts_what_is_under_way_and_ends_every_thread() -> None:
    before, cut = threading.active_count(), threading.Event()
    with Workers(itertools.count(), lambda _: cut.wait(WAIT_S), 3, cut.set):
        pass
    assert threading.active_count() == before


def test_an_input_that_never_comes_is_not_waited_for() -> None:
    asked, came = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        asked.set()
        came.wait(WAIT_S)
        yield 0

    with Workers(items(), str, 3, nothing):
        assert asked.wait(WAIT_S)
    assert not came.is_set()
    came.set()
    for thread in threading.enumerate():
        if thread.name.startswith("svc-row"):
            thread.join(WAIT_S)


def test_while_no_result_comes_the_caller_is_told() -> None:
    told = threading.Event()

    def work(item: int) -> int:
        assert told.wait(10)
        return item

    with Workers(iter([1]), work, 1, lambda: None, told.set) as results:
        assert list(results) == [1]


class Ticking:
    """A clock that goes on by as much as is said whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def held_up(kept: list[int], cleared: list[bool], clock: Ticking) -> Workers[int, int]:
    """Work on four items, the second of which is done once two later results were kept."""
    late = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            assert late.wait(WAIT_S)
        return number

    def keep(number: int) -> None:
        kept.append(number)
        if len(kept) == 2:
            late.set()

    def clear() -> None:
        cleared.append(True)

    return Workers(iter(range(4)), work, 2, late.set, keep=keep, clear=clear, clock=clock)


def test_results_that_wait_for_a_late_one_are_kept_once_until_they_are_given() -> None:
    kept, cleared = list[int](), list[bool]()
    with held_up(kept, cleared, Ticking(LATE_S)) as results:
        assert list(results) == [0, 1, 2, 3]
    assert kept == [2, 3]
    assert cleared == [True]


def test_results_that_were_not_given_are_kept_when_the_work_ends() -> None:
    kept, cleared = list[int](), list[bool]()
    with held_up(kept, cleared, Ticking(0.0)) as results:
        assert next(iter(results)) == 0
    assert 0 not in kept
    assert cleared == []


def test_results_that_come_in_time_are_not_kept() -> None:
    kept: list[int] = []
    with Workers(iter(range(50)), int, 4, nothing, keep=kept.append, clock=Ticking(0.0)) as results:
        assert list(results) == list(range(50))
    assert kept == []
