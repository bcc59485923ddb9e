from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from svc import limits
from svc.learning.scheduler import Scheduler


class Ran:
    """Notes what was run, in the order."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, item: str) -> None:
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.items) >= count, 30)
            return list(self.items)


class Held(Ran):
    """Waits with each until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, item: str) -> None:
        self.begun.set()
        assert self.go.wait(30)
        super().__call__(item)


def using(run: Callable[[str], None], use: Callable[[Scheduler[str]], None]) -> None:
    later = Scheduler(run)
    try:
        use(later)
    finally:
        later.close()


def test_what_is_due_runs_in_the_order_of_its_time() -> None:
    ran = Ran()

    def use(later: Scheduler[str]) -> None:
        later.schedule("second", 0.05)
        later.schedule("first", 0.01)
        assert ran.wait_for(2) == ["first", "second"]

    using(ran, use)


def test_what_is_scheduled_again_runs_once_at_the_earlier_time() -> None:
    ran = Ran()

    def use(later: Scheduler[str]) -> None:
        later.schedule("twice", 60)
        later.schedule("twice", 0.01)
        later.schedule("twice", 60)
        later.schedule("after", 0.05)
        assert ran.wait_for(2) == ["twice", "after"]

    using(ran, use)


def test_a_rest_follows_what_took_long() -> None:
    now, began_at = [0.0], []
    ran = Ran()

    def run(item: str) -> None:
        began_at.append(now[0])
        now[0] += 1.0
        ran(item)

    later = Scheduler(run, clock=lambda: now[0])
    try:
        later.schedule("long", 0)
        ran.wait_for(1)
        while len(began_at) < 2:
            now[0] += 0.01
            later.schedule("next", 0)
    finally:
        later.close()
    assert began_at[1] >= 1.0 + limits.FIT_REST


def test_the_many_of_one_owner_do_not_hold_up_those_of_others() -> None:
    ran = Held()
    later = Scheduler(ran, owner=lambda item: item[0])
    try:
        for item in ("a1", "a2", "a3", "a4"):
            later.schedule(item, 0)
            assert ran.begun.wait(30)
        later.schedule("b1", 0)
        later.schedule("c1", 0)
        ran.go.set()
        assert ran.wait_for(6) == ["a1", "b1", "c1", "a2", "a3", "a4"]
    finally:
        later.close()


def test_owners_that_come_now_and_then_do_not_hold_up_one_that_always_has_something_due() -> None:
    """Of the rare ones one is scheduled while another runs: each time it is as if it was new."""
    ran = Ran()

    def run(item: str) -> None:
        ran(item)
        later.schedule({"rare": "seldom", "seldom": "rare"}.get(item, item), 0)

    later = Scheduler(run)
    try:
        later.schedule("rare", 0)
        later.schedule("busy", 0)
        assert ran.wait_for(20)[1:20].count("busy") >= 6
    finally:
        later.close()


def test_a_failure_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ran = Ran()

    def fail_first(item: str) -> None:
        ran(item)
        if item == "bad":
            raise ZeroDivisionError

    def use(later: Scheduler[str]) -> None:
        later.schedule("bad", 0)
        assert ran.wait_for(1) == ["bad"]
        later.schedule("good", 0)
        assert ran.wait_for(2) == ["bad", "good"]

    with caplog.at_level(logging.ERROR):
        using(fail_first, use)
    assert "a refit failed" in caplog.text


def test_closing_leaves_the_rest_undone() -> None:
    ran = Ran()
    using(ran, lambda later: later.schedule("never", 60))
    assert ran.items == []


def test_what_failed_runs_again_after_a_while() -> None:
    ran = Ran()

    def run(item: str) -> None:
        ran(item)
        if len(ran.items) == 1:
            raise OSError("for once")

    later = Scheduler(run, retry_s=0.01)
    later.schedule("again", 0)
    assert ran.wait_for(2) == ["again", "again"]
    later.close()


class Undone:
    """What is still to be run, as a database knows it."""

    def __init__(self, *items: str) -> None:
        self.items, self.asked = set(items), list[int]()
        self.ran = Ran()

    def run(self, item: str) -> None:
        self.items.discard(item)
        self.ran(item)

    def first(self, most: int) -> list[str]:
        self.asked.append(most)
        return sorted(self.items)[:most]


def test_few_are_remembered_and_the_others_are_found_when_half_of_them_ran() -> None:
    names = [f"item {number}" for number in range(30)]
    undone = Undone(*names[:20])
    later = Scheduler(undone.run, retry_s=0.0, left_out=undone.first, most=4)
    try:
        undone.ran.wait_for(20)
        undone.items.update(names[20:])
        for item in names[20:]:
            later.schedule(item, 0.01)
        assert sorted(undone.ran.wait_for(30)) == sorted(names)
    finally:
        later.close()
    # One more than are remembered, to see whether there are others: at the start, and each time
    # that two ran.
    assert set(undone.asked) == {5}
    assert 6 <= len(undone.asked) <= 16


def test_who_has_most_of_what_is_remembered_gives_up_its_last() -> None:
    ran = Held()
    later = Scheduler(ran, owner=lambda item: item[0], most=4)
    try:
        later.schedule("first", 0)
        assert ran.begun.wait(30)
        # With the fifth, the third of `b` and the second of `c` nobody would have fewer.
        for item in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3", "c1", "c2"):
            later.schedule(item, 0.001 * int(item[1]))
        ran.go.set()
        assert set(ran.wait_for(5)) == {"first", "a1", "b1", "b2", "c1"}
    finally:
        later.close()
    assert len(ran.items) == 5


def test_those_that_could_not_be_found_are_looked_for_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran, looks = Ran(), list[int]()

    def left_out(most: int) -> list[str]:
        looks.append(most)
        if len(looks) == 1:
            raise OSError("the disk is away")
        return ["found"]

    with caplog.at_level(logging.ERROR):
        later = Scheduler(ran, retry_s=0.01, left_out=left_out)
        assert ran.wait_for(1) == ["found"]
        later.close()
    assert "what is to be fitted was not found" in caplog.text


def test_closing_does_not_wait_for_what_takes_long(caplog: pytest.LogCaptureFixture) -> None:
    begun, go, gone = threading.Event(), threading.Event(), threading.Event()

    def run(item: str) -> None:
        begun.set()
        assert go.wait(30)
        gone.set()
        raise OSError("the database is closed")

    later = Scheduler(run, closing_s=0.01)
    later.schedule("long", 0)
    assert begun.wait(30)
    with caplog.at_level(logging.ERROR):
        later.close()
        go.set()
        assert gone.wait(30)
        later.close()
    assert not caplog.text
