"""Costly work of a key, one after the other."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time

import pytest

from svc.costly import FREE_BACK, FREE_S, PAUSE, CostlyWork, FreeSeconds, Places
from svc.deadline import Deadline
from svc.errors import RateLimited, Timeout
from svc.rests import Rests

SMALL = 100
LARGE = SMALL + 1
COST_S = 0.2


class Machine:
    """A clock, the processor time of the thread, and the pauses that were made."""

    def __init__(self) -> None:
        self.now = self.used = 0.0
        self.pauses: list[float] = []
        self.work = CostlyWork(SMALL, lambda: self.used, lambda: self.now, self.sleep)

    def deadline(self, within_s: float = 60.0) -> Deadline:
        return Deadline(within_s, lambda: self.now)

    def sleep(self, _: Deadline, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def do(self, key_id: str | None, size: int = LARGE, within_s: float = 60.0) -> None:
        """Work that takes `COST_S`."""
        with self.work.turn(key_id, size, self.deadline(within_s)):
            self.now += COST_S
            self.used += COST_S


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_key_waits_after_its_turn_before_it_has_the_next(machine: Machine) -> None:
    machine.do("one")
    machine.do("one")
    assert machine.pauses == [0.0, pytest.approx(PAUSE * COST_S)]


def test_who_waited_long_enough_by_itself_does_not_wait_again(machine: Machine) -> None:
    machine.do("one")
    machine.now += PAUSE * COST_S
    machine.do("one")
    assert machine.pauses == [0.0, 0.0]


def test_another_key_does_not_wait_for_it(machine: Machine) -> None:
    machine.do("one")
    machine.do("other")
    assert machine.pauses == [0.0, 0.0]


def test_what_is_small_never_waits(machine: Machine) -> None:
    machine.do("one")
    machine.do("one", SMALL)
    assert machine.pauses == [0.0]


def test_callers_without_a_key_make_no_pauses(machine: Machine) -> None:
    machine.do(None)
    machine.do(None)
    assert machine.pauses == [0.0, 0.0]


@pytest.mark.parametrize("key_id", ["one", None])
def test_a_turn_that_does_not_come_in_time_ends_at_the_deadline(
    machine: Machine, key_id: str | None
) -> None:
    with machine.work.turn(key_id, LARGE, Deadline(60.0)), pytest.raises(Timeout):
        machine.do(key_id, within_s=0.01)


def test_a_pause_never_lasts_beyond_the_deadline(machine: Machine) -> None:
    machine.do("one")
    with pytest.raises(Timeout):
        machine.do("one", within_s=0.3)
    assert machine.pauses[-1] == pytest.approx(0.3)
    machine.do("one")


@pytest.mark.parametrize("resting", [True, False])
def test_who_waits_for_a_turn_or_in_a_pause_hears_that_nobody_wants_it_any_more(
    resting: bool,
) -> None:
    work = CostlyWork(SMALL, itertools.count().__next__, pause=1_000.0)
    deadline = Deadline(60.0)
    with contextlib.ExitStack() as turn:
        turn.enter_context(work.turn("one", LARGE, Deadline(60.0)))
        if resting:
            turn.close()
        threading.Timer(0.05, deadline.cancel).start()
        began = time.monotonic()
        with pytest.raises(Timeout), work.turn("one", LARGE, deadline):
            pass
    assert time.monotonic() - began < 30.0


def test_work_that_fails_gives_its_turn_back(machine: Machine) -> None:
    with (
        pytest.raises(ValueError, match="no JSON"),
        machine.work.turn("one", LARGE, Deadline(60.0)),
    ):
        raise ValueError("no JSON")
    machine.do("one")


@pytest.mark.parametrize("unnoticed", [0.25, 1.0])
def test_what_nobody_notices_is_followed_by_no_pause(machine: Machine, unnoticed: float) -> None:
    clock, processor = (lambda: machine.now), (lambda: machine.used)
    machine.work = CostlyWork(
        SMALL, processor, clock, machine.sleep, unnoticed_s=unnoticed * COST_S
    )
    machine.do("one")
    machine.do("one")
    assert machine.pauses == [0.0, pytest.approx(PAUSE * (1 - unnoticed) * COST_S)]


def test_work_may_have_a_pause_of_its_own(machine: Machine) -> None:
    clock, processor = (lambda: machine.now), (lambda: machine.used)
    machine.work = CostlyWork(SMALL, processor, clock, machine.sleep, pause=0.0)
    machine.do("one")
    machine.do("one")
    assert machine.pauses == [0.0, 0.0]


def test_a_key_pauses_for_other_kinds_of_work_too_where_they_share_their_rests(
    machine: Machine,
) -> None:
    rests = Rests()
    kinds = (lambda: machine.used, lambda: machine.now, machine.sleep)
    for machine.work in (CostlyWork(SMALL, *kinds, rests=rests) for _ in range(3)):
        machine.do("one")
    machine.do("other")
    assert machine.pauses == [0.0, *[pytest.approx(PAUSE * COST_S)] * 2, 0.0]


def test_who_pauses_goes_on_pausing_where_the_key_works_meanwhile(machine: Machine) -> None:
    rests = Rests()
    rests.add("one", 0.0, 1.0)

    def sleep(deadline: Deadline, seconds: float) -> None:
        if not machine.pauses:
            rests.add("one", machine.now, 2.0)
        machine.sleep(deadline, seconds)

    clocks = (lambda: machine.used, lambda: machine.now)
    machine.work = CostlyWork(SMALL, *clocks, sleep, rests=rests)
    machine.do("one")
    assert machine.pauses == [1.0, 2.0]


def test_what_follows_a_turn_costs_pauses_too(machine: Machine) -> None:
    machine.do("one")
    with machine.work.resting("one", LARGE, machine.deadline(), 0.1):
        machine.now += 1.0
        machine.used += 1.0
    machine.do("one")
    assert machine.pauses[-1] == pytest.approx(PAUSE * 0.9)


@pytest.mark.parametrize(("key_id", "size"), [("one", SMALL), (None, LARGE)])
def test_what_follows_small_work_or_comes_without_a_key_costs_none(
    machine: Machine, key_id: str | None, size: int
) -> None:
    with machine.work.resting(key_id, size, machine.deadline(), 0.0):
        machine.used += 1.0
    machine.do(key_id)
    assert machine.pauses == [0.0]


def test_who_does_not_wait_for_a_place_is_told_when_to_come_again() -> None:
    places = Places(2)
    with places.place_now("one", "things"), places.place_now("one", "things"):
        with pytest.raises(RateLimited) as refused, places.place_now("one", "things"):
            pass
        with places.place_now("other", "things"):
            pass
    assert refused.value.message == "this API key has 2 things under way"
    assert refused.value.retry_after == 1
    with places.place_now("one", "things"):
        pass


def test_much_work_in_a_row_of_which_none_would_be_noticed_is_followed_by_pauses(
    machine: Machine,
) -> None:
    clock, processor = (lambda: machine.now), (lambda: machine.used)
    free, rests = FreeSeconds(clock), Rests()
    kinds = [
        CostlyWork(SMALL, processor, clock, machine.sleep, PAUSE, COST_S, rests, free)
        for _ in range(2)
    ]
    assert FREE_S == COST_S
    # What one kind of work took is free for no other.
    for machine.work in kinds:
        machine.do("a")
    machine.do("a")
    came_back_s = FREE_BACK * COST_S
    assert machine.pauses == [0.0, 0.0, pytest.approx(PAUSE * (COST_S - came_back_s))]
    machine.do("b")
    assert machine.pauses[-1] == 0.0


def test_what_is_free_comes_back_with_time() -> None:
    now = 100.0
    free = FreeSeconds(lambda: now)
    assert free.take("a", 0.15) == 0.15
    assert free.take("a", 0.15) == pytest.approx(FREE_S - 0.15)
    now += 1.0
    assert free.take("a", 0.15) == pytest.approx(FREE_BACK)
    now += 1_000.0
    assert free.take("a", 10.0) == pytest.approx(FREE_S)
