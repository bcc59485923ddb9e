"""Looks come when they are due, and again soon where the database failed."""

from __future__ import annotations

import pytest

from svc.hooks.looking import CLOSE_LOOK_AGAIN_S, CLOSE_LOOK_EVERY_S, LOOK_EVERY_S, Looking
from svc.store import StorageError

NEAR, CLOSE, FORGET, TELL = "a few rows", "reports", "forget", "tell"


class Notes:
    """Stands for what looks, and notes what it is asked for; `failing` is what raises."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing, self.are_done = "", True
        self.now = 1_000.0
        self.looking = Looking(self, lambda: self._note(FORGET), lambda: self.now)

    def look(self) -> None:
        self._note(NEAR)

    def look_closely(self) -> bool:
        self._note(CLOSE)
        return self.are_done

    def tell(self) -> None:
        self._note(TELL)

    def after(self, seconds: float) -> list[str]:
        """What is asked for, so long after the time before."""
        self.now += seconds
        self.asked.clear()
        self.looking.look()
        return self.asked

    def _note(self, what: str) -> None:
        self.asked.append(what)
        if what == self.failing:
            raise StorageError("the disk is full")


@pytest.fixture
def notes() -> Notes:
    return Notes()


def test_the_first_look_is_a_close_one(notes: Notes) -> None:
    assert notes.after(0) == [NEAR, CLOSE, FORGET, TELL]


def test_reports_are_looked_at_less_often(notes: Notes) -> None:
    notes.after(0)
    assert notes.after(LOOK_EVERY_S / 2) == []
    assert notes.after(LOOK_EVERY_S / 2) == [NEAR, TELL]
    assert notes.after(CLOSE_LOOK_EVERY_S) == [NEAR, CLOSE, FORGET, TELL]


@pytest.mark.parametrize("failing", [CLOSE, FORGET])
def test_a_close_look_that_failed_comes_again_soon(notes: Notes, failing: str) -> None:
    notes.failing = failing
    with pytest.raises(StorageError):
        notes.after(0)
    notes.failing = ""
    # Meanwhile the others go on.
    assert notes.after(LOOK_EVERY_S) == [NEAR, TELL]
    assert notes.after(CLOSE_LOOK_AGAIN_S) == [NEAR, CLOSE, FORGET, TELL]
    assert notes.after(CLOSE_LOOK_AGAIN_S) == [NEAR, TELL]


def test_a_close_look_that_left_reports_comes_again_soon(notes: Notes) -> None:
    notes.are_done = False
    notes.after(0)
    notes.are_done = True
    assert notes.after(LOOK_EVERY_S) == [NEAR, TELL]
    assert notes.after(CLOSE_LOOK_AGAIN_S) == [NEAR, CLOSE, FORGET, TELL]
    assert notes.after(CLOSE_LOOK_AGAIN_S) == [NEAR, TELL]


def test_a_look_that_failed_is_due_again_at_once(notes: Notes) -> None:
    notes.failing = NEAR
    with pytest.raises(StorageError):
        notes.after(0)
    notes.failing = ""
    assert notes.after(0) == [NEAR, CLOSE, FORGET, TELL]
