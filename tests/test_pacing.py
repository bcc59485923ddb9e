"""What a key has of a processor, alone and in company."""

from __future__ import annotations

import contextlib
import threading

import pytest

from svc.deadline import Deadline
from svc.errors import Timeout
from svc.pacing import COMPANY, FIRST_S, HALF_LIFE_S, IN_ADVANCE_S, VISITORS, Pacing
from svc.rests import Rests

COST_S, LENIENCE_S = 0.3, 0.1
WAIT_S = 30.0
COMPANY_S, SHARE = COMPANY
VISITORS_S, LARGER_SHARE = VISITORS

# For how long work of `COST_S` has others of its key wait, from when it has ended.
PAUSE_S = COST_S / SHARE - COST_S - LENIENCE_S


class Machine:
    """A clock, the processor time of the thread, and the pauses that were made."""

    def __init__(self, unnoticed_s: float = 0.0) -> None:
        self.now, self.used = 1_000.0, 0.0
        self.pauses: list[float] = []
        self.sleeps = self.rest
        clocks = (lambda: self.used, lambda: self.now, self.sleep)
        self.pacing = Pacing(Rests(LENIENCE_S), unnoticed_s, None, *clocks)
        # A request of before took next to nothing.
        self.pacing.end(("one", 0), 0.0, 0.0)

    def deadline(self, within_s: float = 60.0) -> Deadline:
        return Deadline(within_s, lambda: self.now)

    def sleep(self, deadline: Deadline, seconds: float) -> None:
        self.sleeps(deadline, seconds)

    def rest(self, _: Deadline, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def work(self, seconds: float = COST_S) -> None:
        """In the thread of a request."""
        self.now += seconds
        self.used += seconds

    def do(self, key_id: str | None = "one", seconds: float = COST_S) -> None:
        """A request that takes so long."""
        with self.pacing.paced(key_id, self.deadline()):
            self.work(seconds)

    def pause_s(self) -> float:
        return self.pacing.pause_s("one")

    def pause_of_call(self, deadline: Deadline, seconds: float) -> float:
        """Another thread works so long for a request; the pause before the request's next call."""
        self.now += seconds
        times = iter([0.0, seconds])
        with deadline.effort.counted(lambda: next(times)):
            pass
        return deadline.effort.pause_s()


@pytest.fixture
def machine() -> Machine:
    """Of two keys that take turns at being the last."""
    machine = Machine()
    machine.do("other", 0.0)
    return machine


def test_a_key_pauses_for_what_it_took_beyond_its_share(machine: Machine) -> None:
    machine.do()
    machine.do()
    assert machine.pauses == [pytest.approx(PAUSE_S)]


def test_a_key_that_takes_no_more_than_its_share_makes_no_pause(machine: Machine) -> None:
    """Beside a single small request it had made pauses of three times what it took."""
    for _ in range(100):
        machine.do("other", 0.0)
        machine.do()
        machine.now += COST_S / SHARE - COST_S
    assert machine.pauses == []


def test_a_key_has_its_share_in_the_long_run(machine: Machine) -> None:
    began, requests = machine.now, 100
    for _ in range(requests):
        machine.do("other", 0.0)
        machine.do()
    took_s = machine.now - began
    assert requests * COST_S / took_s == pytest.approx(SHARE, rel=0.01)


def test_another_key_makes_no_pause_for_it(machine: Machine) -> None:
    machine.do()
    machine.do("other")
    assert machine.pauses == []


def test_callers_without_a_key_are_not_paced(machine: Machine) -> None:
    machine.do(None)
    machine.do(None)
    assert machine.pauses == []


def test_a_key_that_is_alone_is_not_paced() -> None:
    machine = Machine()
    machine.do()
    machine.do()
    assert machine.pauses == []


def test_a_key_is_alone_again_once_others_have_asked_for_nothing_for_some_time(
    machine: Machine,
) -> None:
    machine.now += VISITORS_S
    machine.do()
    machine.do()
    assert machine.pauses == []


def test_a_key_that_others_visit_now_and_then_has_a_larger_share(machine: Machine) -> None:
    machine.now += COMPANY_S
    machine.do()
    machine.do()
    assert machine.pauses == [pytest.approx(COST_S / LARGER_SHARE - COST_S - LENIENCE_S)]


def test_a_key_is_not_alone_while_another_goes_on_beside_its_long_request(machine: Machine) -> None:
    with machine.pacing.paced("one", machine.deadline()):
        for _ in range(3):
            machine.now += COMPANY_S / 2
            machine.do("other", 0.0)
        machine.work()
    assert machine.pause_s() == pytest.approx(PAUSE_S)


def test_what_other_threads_do_for_a_request_counts(machine: Machine) -> None:
    deadline = machine.deadline()
    with machine.pacing.paced("one", deadline):
        assert machine.pause_of_call(deadline.branch(), COST_S) == pytest.approx(PAUSE_S)


def test_what_other_threads_do_for_a_request_that_is_over_counts(machine: Machine) -> None:
    """The caller has left, or another model was faster."""
    deadline = machine.deadline()
    times = iter([5.0, 5.0 + COST_S])
    with contextlib.ExitStack() as late:
        with machine.pacing.paced("one", deadline):
            late.enter_context(deadline.branch().effort.counted(lambda: next(times)))
            machine.work()
        assert machine.pause_s() == pytest.approx(PAUSE_S)
    assert machine.pause_s() == pytest.approx(PAUSE_S + COST_S / SHARE)


def test_calls_of_many_requests_of_a_key_wait_one_after_the_other(machine: Machine) -> None:
    deadlines = [machine.deadline() for _ in range(3)]
    with contextlib.ExitStack() as requests:
        for deadline in deadlines:
            requests.enter_context(machine.pacing.paced("one", deadline))
        waits = [machine.pause_of_call(deadline, COST_S) for deadline in deadlines]
    one_s = COST_S / SHARE - COST_S
    assert waits == pytest.approx([number * one_s - LENIENCE_S for number in (1, 2, 3)])


def test_nothing_counts_twice(machine: Machine) -> None:
    """What the own thread of a request took counts once that says so, and not again at its end.

    Twenty requests that came at once had made no pause before the first of them ended.
    """
    deadline = machine.deadline()
    with machine.pacing.paced("one", deadline):
        machine.work()
        assert machine.pause_s() == 0.0
        deadline.effort.own_noted()
        assert machine.pause_s() == pytest.approx(PAUSE_S)
        assert deadline.effort.pause_s() == pytest.approx(PAUSE_S)
    assert machine.pause_s() == pytest.approx(PAUSE_S)


def test_a_request_of_a_key_that_is_alone_makes_its_calls_at_once() -> None:
    machine = Machine()
    deadline = machine.deadline()
    with machine.pacing.paced("one", deadline):
        assert machine.pause_of_call(deadline, COST_S) == 0.0


@pytest.mark.parametrize("unnoticed_s", [0.1, 1.0])
def test_the_first_of_what_a_request_takes_does_not_count(unnoticed_s: float) -> None:
    machine = Machine(unnoticed_s)
    machine.do("other", 0.0)
    machine.do()
    noticed_s = max(0.0, COST_S - unnoticed_s)
    pause_s = noticed_s / SHARE - noticed_s - LENIENCE_S
    assert machine.pause_s() == pytest.approx(max(0.0, pause_s))


def test_a_pause_never_lasts_beyond_the_deadline(machine: Machine) -> None:
    machine.do(seconds=10.0)
    with pytest.raises(Timeout), machine.pacing.paced("one", machine.deadline(0.5)):
        pass
    assert machine.pauses == [pytest.approx(0.5)]


def test_of_many_requests_that_wait_one_begins_after_the_other(machine: Machine) -> None:
    """All at once they would fill all workers, and leave them empty for as long after it."""
    machine.do(seconds=0.05)
    machine.now += COMPANY_S / 2
    usual_s = 0.05 * 0.5 ** (COMPANY_S / 2 / HALF_LIFE_S)
    with contextlib.ExitStack() as requests:
        for _ in range(10):
            requests.enter_context(machine.pacing.paced("one", machine.deadline()))
    # None of them took any time: what counted in advance counts no more.
    assert sum(machine.pauses) == pytest.approx(9 * usual_s / SHARE - LENIENCE_S, abs=0.01)
    assert machine.pause_s() == 0.0


def test_what_counts_in_advance_is_not_counted_again(machine: Machine) -> None:
    machine.do()
    machine.now += 1.0
    machine.do()
    assert machine.pause_s() == pytest.approx(COST_S / SHARE - COST_S - LENIENCE_S)
    with machine.pacing.paced("one", machine.deadline()):
        assert machine.pause_s() == pytest.approx(IN_ADVANCE_S / SHARE - LENIENCE_S, abs=0.1)


def test_a_cheap_request_does_not_hide_what_others_take(machine: Machine) -> None:
    machine.do(seconds=0.05)
    machine.do(seconds=0.0)
    machine.now += HALF_LIFE_S
    machine.do("other", 0.0)
    with machine.pacing.paced("one", machine.deadline()):
        until = machine.pacing._rests.until("one")
    assert until - machine.now == pytest.approx(0.5 * 0.05 / SHARE - LENIENCE_S, abs=0.001)


def test_a_large_request_is_no_measure_of_small_ones(machine: Machine) -> None:
    """After one decision of many questions a key's own small ones waited for up to 20 s."""
    with machine.pacing.paced("one", machine.deadline(), 50_000):
        machine.work(2.0)
    machine.now += COMPANY_S / 2
    machine.do("other", 0.0)
    with machine.pacing.paced("one", machine.deadline(), 300):
        assert machine.pause_s() == 0.0
    with machine.pacing.paced("one", machine.deadline(), 60_000):
        until = machine.pacing._rests.until("one")
    assert until - machine.now == pytest.approx(IN_ADVANCE_S / SHARE - LENIENCE_S)


def test_no_request_overtakes_those_of_its_key_that_wait(machine: Machine) -> None:
    machine.do()
    waits, goes_on = threading.Event(), threading.Event()

    def sleep(_: Deadline, seconds: float) -> None:
        waits.set()
        goes_on.wait(WAIT_S)
        machine.now += seconds

    machine.sleeps = sleep
    order: list[str] = []

    def ask(name: str) -> None:
        with machine.pacing.paced("one", machine.deadline()):
            order.append(name)

    first = threading.Thread(target=ask, args=("first",))
    first.start()
    assert waits.wait(WAIT_S)
    machine.now += PAUSE_S
    second = threading.Thread(target=ask, args=("second",))
    second.start()
    second.join(0.2)
    assert order == []
    goes_on.set()
    first.join(WAIT_S)
    second.join(WAIT_S)
    assert order == ["first", "second"]


def test_the_first_requests_of_a_key_begin_a_little_after_each_other(machine: Machine) -> None:
    with contextlib.ExitStack() as requests:
        for _ in range(40):
            requests.enter_context(machine.pacing.paced("new", machine.deadline()))
    assert sum(machine.pauses) == pytest.approx(39 * FIRST_S / SHARE - LENIENCE_S)
