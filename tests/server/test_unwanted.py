"""What nobody wants is dropped at a bounded rate."""

from __future__ import annotations

import pytest

from svc.server.unwanted import BYTES_A_SECOND, BYTES_AT_ONCE, Unwanted
from tests.clock import Clock


def test_what_is_dropped_at_once_and_in_a_second_has_bounds() -> None:
    clock = Clock()
    unwanted = Unwanted(clock)
    assert not unwanted.dropped(BYTES_AT_ONCE)
    assert unwanted.dropped(BYTES_A_SECOND // 2)
    clock.now += 0.6
    assert not unwanted.dropped(0)
    assert unwanted.dropped(BYTES_A_SECOND)


def test_who_waits_goes_on_once_more_may_be_dropped() -> None:
    clock = Clock()
    unwanted = Unwanted(clock)
    assert unwanted.due_in() == float("inf")
    assert unwanted.dropped(BYTES_AT_ONCE + BYTES_A_SECOND)
    for name in ("one", "other"):
        unwanted.keep(name)
    assert unwanted.due_in() == pytest.approx(1.0)
    assert list(unwanted.going_on()) == []
    clock.now += 1.0
    assert list(unwanted.going_on()) == ["one", "other"]
    assert unwanted.due_in() == float("inf")
