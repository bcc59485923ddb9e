from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from svc.deadline import Deadline
from svc.errors import InternalError, ModelError, RateLimited, Timeout
from svc.flows import FlowPool, Job
from tests.store.holding import until


@pytest.fixture
def flows() -> Iterator[FlowPool]:
    pool = FlowPool(threads=8)
    yield pool
    pool.close()


def anything(_value: str) -> bool:
    return True


def giving(value: str) -> Job[str]:
    return lambda _lane: value


def failing(error: Exception) -> Job[str]:
    def job(_lane: Deadline) -> str:
        raise error

    return job


def until_cut_off(ended: threading.Event) -> Job[str]:
    """A job that only ends when its lane is cancelled."""

    def job(lane: Deadline) -> str:
        stopped = threading.Event()
        with lane.interrupting(stopped.set):
            assert stopped.wait(30)
        ended.set()
        raise Timeout("cut off")

    return job


def test_outcomes_come_in_the_order_of_the_jobs(flows: FlowPool) -> None:
    error = ModelError("no")
    jobs = [giving("a"), failing(error), giving("c")]
    assert flows.run(jobs, Deadline(30)) == ["a", error, "c"]
    assert flows.run([], Deadline(30)) == []


def test_jobs_run_at_the_same_time_one_of_them_in_the_callers_thread(flows: FlowPool) -> None:
    meeting, threads = threading.Barrier(3), []

    def job(_lane: Deadline) -> str:
        meeting.wait(10)
        threads.append(threading.get_ident())
        return "met"

    assert flows.run([job] * 3, Deadline(30)) == ["met"] * 3
    assert threading.get_ident() in threads
    assert len(set(threads)) == 3


def test_a_single_job_takes_no_thread_of_the_pool(flows: FlowPool) -> None:
    def thread(_lane: Deadline) -> int:
        return threading.get_ident()

    assert flows.run([thread], Deadline(30)) == [threading.get_ident()]


@pytest.mark.parametrize("error", [Timeout("late"), InternalError("broken"), ZeroDivisionError()])
@pytest.mark.parametrize("place", [0, 1])
def test_what_no_other_job_would_mend_is_raised(
    flows: FlowPool, error: Exception, place: int
) -> None:
    jobs = [giving("a")]
    jobs.insert(place, failing(error))
    with pytest.raises(type(error)):
        flows.run(jobs, Deadline(30))


def test_a_job_that_outlasts_the_deadline_is_not_waited_for(flows: FlowPool) -> None:
    let_go = threading.Event()

    def held(_lane: Deadline) -> str:
        let_go.wait(30)
        return "late"

    with pytest.raises(Timeout):
        flows.run([held, giving("b")], Deadline(0.1))
    let_go.set()


def test_a_race_is_won_by_the_first_success_and_cuts_the_others_off(flows: FlowPool) -> None:
    ended = [threading.Event(), threading.Event()]
    jobs = [
        until_cut_off(ended[0]),
        failing(ModelError("no")),
        giving("won"),
        until_cut_off(ended[1]),
    ]
    (heat,) = flows.race([jobs], anything, Deadline(30))
    assert heat.winner == (2, "won")
    assert all(event.wait(30) for event in ended)


def test_a_loser_that_does_not_stop_is_not_waited_for(flows: FlowPool) -> None:
    let_go = threading.Event()

    def stubborn(_lane: Deadline) -> str:
        let_go.wait(30)
        return "late"

    (heat,) = flows.race([[stubborn, giving("won")]], anything, Deadline(30))
    assert heat.winner == (1, "won")
    let_go.set()


def test_each_heat_has_a_winner_of_its_own(flows: FlowPool) -> None:
    meeting = threading.Barrier(2)

    def met(value: str) -> Job[str]:
        def job(_lane: Deadline) -> str:
            meeting.wait(10)  # neither heat may wait for the other to end
            return value

        return job

    first, second = flows.race(
        [[met("a")], [failing(ModelError("no")), met("b")]], anything, Deadline(30)
    )
    assert (first.winner, second.winner) == ((0, "a"), (1, "b"))


def test_the_losers_of_a_heat_are_cut_off_while_another_heat_still_runs(flows: FlowPool) -> None:
    ended = threading.Event()

    def after_them(_lane: Deadline) -> str:
        assert ended.wait(30)
        return "late"

    first, second = flows.race(
        [[until_cut_off(ended), giving("won")], [after_them]], anything, Deadline(60)
    )
    assert (first.winner, second.winner) == ((1, "won"), (0, "late"))


def test_a_heat_that_nobody_finishes_has_its_failures(flows: FlowPool) -> None:
    errors = [ModelError("a"), RateLimited("b", 3)]
    (heat,) = flows.race([[failing(error) for error in errors]], anything, Deadline(30))
    assert heat.winner is None
    assert set(heat.failures) == set(errors)


def test_a_race_that_outlasts_the_deadline_cuts_everyone_off(flows: FlowPool) -> None:
    ended = threading.Event()
    with pytest.raises(Timeout):
        flows.race([[until_cut_off(ended)]], anything, Deadline(0.1))
    assert ended.wait(30)


@pytest.mark.parametrize("error", [InternalError("broken"), ZeroDivisionError()])
def test_an_unforeseen_failure_ends_a_race_instead_of_hanging_it(
    flows: FlowPool, error: Exception
) -> None:
    ended = threading.Event()
    with pytest.raises(type(error)):
        flows.race([[until_cut_off(ended), failing(error)]], anything, Deadline(30))
    assert ended.wait(30)


def test_a_closed_pool_has_no_thread_left() -> None:
    pool = FlowPool(threads=4)
    pool.run([giving("a")] * 4, Deadline(30))
    pool.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("svc-flow")]


def test_an_outcome_that_is_not_valid_wins_only_where_no_other_one_comes(flows: FlowPool) -> None:
    def valid(value: str) -> bool:
        return value != "nothing"

    meeting = threading.Barrier(2)

    def first(_lane: Deadline) -> str:
        try:
            return "nothing"
        finally:
            meeting.wait(10)

    def second(_lane: Deadline) -> str:
        meeting.wait(10)
        return "won"

    empty = [failing(ModelError("no")), giving("nothing")]
    won, lost = flows.race([[first, second], empty], valid, Deadline(30))
    assert won.winner == (1, "won")
    assert lost.winner == (1, "nothing")


def test_a_caller_leaves_threads_to_others_and_its_own_jobs_all_run(flows: FlowPool) -> None:
    """Of eight threads, one caller has four; what is beyond runs in its own thread."""
    let_go, begun = threading.Event(), threading.Semaphore(0)

    def held(_lane: Deadline) -> str:
        begun.release()
        let_go.wait(30)
        return "done"

    greedy: list[object] = []
    thread = threading.Thread(
        target=lambda: greedy.extend(flows.run([held] * 12, Deadline(30), "greedy"))
    )
    thread.start()
    # Four in threads of the pool, and one in its own.
    for _ in range(5):
        assert begun.acquire(timeout=10)
    assert flows.run([giving("a"), giving("b")], Deadline(30), "other") == ["a", "b"]
    (race,) = flows.race([[giving("a"), giving("b")]], anything, Deadline(30), "other")
    assert race.winner is not None
    let_go.set()
    thread.join(30)
    assert greedy == ["done"] * 12


def test_what_has_no_place_in_a_race_begins_when_there_is_one(flows: FlowPool) -> None:
    (race,) = flows.race([[failing(ModelError("no"))] * 20], anything, Deadline(30), "greedy")
    assert (race.winner, len(race.failures)) == (None, 20)


def test_a_race_whose_jobs_find_no_place_ends_with_its_deadline(flows: FlowPool) -> None:
    let_go = threading.Event()

    def held(_lane: Deadline) -> str:
        let_go.wait(30)
        return "late"

    with pytest.raises(Timeout):
        flows.race([[held] * 20], anything, Deadline(0.3), "greedy")
    let_go.set()


class Held:
    """Something large that a job holds."""


def test_what_a_loser_held_is_free_once_it_has_ended(flows: FlowPool) -> None:
    held = Held()
    left, ended = weakref.ref(held), threading.Event()

    def losing(lane: Deadline, held: Held | None = held) -> str:
        until_cut_off(ended)(lane)
        raise Timeout(repr(held))

    gc.disable()
    try:
        (heat,) = flows.race([[losing, giving("won")]], anything, Deadline(30))
        assert heat.winner == (1, "won")
        del held, losing, heat
        # No collection of circles is needed for that.
        until(lambda: left() is None)
    finally:
        gc.enable()
