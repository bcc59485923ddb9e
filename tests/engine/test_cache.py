from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from svc.deadline import Deadline
from svc.engine.cache import DecisionCache, cache_key
from svc.errors import ModelError, NoSlotInTime, OutOfCalls, Timeout

KEY = cache_key("key")
FAR = Deadline(1e6)


def keep(cache: DecisionCache[str], name: str, mode: str = "auto") -> bool:
    """Fetch `name`; whether it was remembered."""
    value, hit = cache.fetch(mode, cache_key(name), FAR, lambda: name)
    assert value == name
    return hit


def never() -> str:
    raise AssertionError("it is remembered")


class Slow:
    """Makes a value when it is let go."""

    def __init__(self, outcome: str | Exception = "made") -> None:
        self.outcome = outcome
        self.started, self.let_go = threading.Event(), threading.Event()
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        self.started.set()
        assert self.let_go.wait(30)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_a_value_is_made_once_and_then_remembered() -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    assert cache.fetch("auto", KEY, FAR, lambda: "made") == ("made", False)
    assert cache.fetch("auto", KEY, FAR, never) == ("made", True)


def test_the_value_used_longest_ago_is_forgotten_first() -> None:
    cache: DecisionCache[str] = DecisionCache(2)
    keep(cache, "a"), keep(cache, "b")
    assert keep(cache, "a")
    keep(cache, "c")
    assert keep(cache, "a")
    assert not keep(cache, "b")


def test_what_is_heavy_leaves_room_for_less() -> None:
    cache: DecisionCache[str] = DecisionCache(10, weigh=len, most=6)
    for name in ("aaa", "bb"):
        keep(cache, name)
    assert keep(cache, "aaa") and keep(cache, "bb")
    keep(cache, "cccc")
    assert keep(cache, "bb") and keep(cache, "cccc") and not keep(cache, "aaa")
    keep(cache, "too heavy")
    assert not keep(cache, "too heavy")


def test_what_is_heavy_in_one_mode_makes_room_for_those_of_other_modes() -> None:
    cache: DecisionCache[str] = DecisionCache(10, weigh=len, most=6)
    keep(cache, "old", "auto"), keep(cache, "heavy", "verbal")
    assert not keep(cache, "a", "auto") and not keep(cache, "b", "auto")
    assert keep(cache, "a", "auto") and keep(cache, "b", "auto")
    keep(cache, "verb", "verbal")
    assert keep(cache, "b", "auto") and keep(cache, "verb", "verbal")


def test_every_mode_has_its_own_values_and_its_own_size() -> None:
    cache: DecisionCache[str] = DecisionCache(1)
    assert not keep(cache, "a", "auto")
    assert not keep(cache, "a", "verbal")
    assert not keep(cache, "a", "logprobs")
    assert keep(cache, "a", "auto")


@pytest.mark.parametrize("cache", [DecisionCache[str](10), DecisionCache[str](99, len, 30)])
def test_the_many_values_of_one_owner_leave_those_of_others(cache: DecisionCache[str]) -> None:
    def keeps(name: str, owner: str) -> bool:
        return cache.fetch("auto", cache_key(owner, name), FAR, lambda: name, owner)[1]

    for number in range(3):
        keeps(f"q{number}", "quiet")
    for number in range(200):
        keeps(f"{number:03}", "loud")
    assert [keeps(f"q{number}", "quiet") for number in range(3)] == [True] * 3


@pytest.mark.parametrize("cache", [DecisionCache[str](10), DecisionCache[str](99, len, 30)])
def test_a_caller_of_many_projects_leaves_values_of_others(cache: DecisionCache[str]) -> None:
    def keeps(name: str, owner: str, caller: str) -> bool:
        return cache.fetch("auto", cache_key(owner, name), FAR, lambda: name, owner, caller)[1]

    for number in range(3):
        keeps(f"q{number}", "quiet", "one")
    for number in range(200):
        keeps(f"{number:03}", f"loud {number}", "other")
    assert [keeps(f"q{number}", "quiet", "one") for number in range(3)] == [True] * 3


def test_size_0_remembers_and_shares_nothing() -> None:
    cache: DecisionCache[str] = DecisionCache(0)
    assert not keep(cache, "a")
    assert not keep(cache, "a")


def test_a_failure_is_not_remembered() -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    with pytest.raises(ZeroDivisionError):
        cache.fetch("auto", KEY, FAR, lambda: str(1 // 0))
    assert cache.fetch("auto", KEY, FAR, lambda: "made") == ("made", False)


def joined(cache: DecisionCache[str], slow: Slow, deadline: Deadline, others: int) -> list[object]:
    """What `others` get who ask while the first one makes the value; the first one's is first."""

    def fetch(limit: Deadline, make: Callable[[], str]) -> object:
        try:
            return cache.fetch("auto", KEY, limit, make)
        except (ModelError, Timeout) as error:
            return type(error)

    with ThreadPoolExecutor(others + 1) as threads:
        leader = threads.submit(fetch, deadline, slow)
        assert slow.started.wait(30)
        waiting = [threads.submit(fetch, Deadline(30), lambda: "own") for _ in range(others)]
        slow.let_go.set()
        return [future.result(30) for future in (leader, *waiting)]


def test_those_who_ask_meanwhile_share_what_is_made() -> None:
    slow = Slow()
    assert joined(DecisionCache(10), slow, FAR, 3) == [("made", False), *[("made", True)] * 3]
    assert slow.made == 1


def test_a_joiner_waits_no_longer_than_its_own_deadline() -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    slow = Slow()
    leader = threading.Thread(target=cache.fetch, args=("auto", KEY, FAR, slow))
    leader.start()
    assert slow.started.wait(30)
    with pytest.raises(Timeout):
        cache.fetch("auto", KEY, Deadline(0.05), never)
    slow.let_go.set()
    leader.join()
    assert cache.fetch("auto", KEY, FAR, never) == ("made", True)


def test_a_joiner_whose_deadline_is_cancelled_leaves_at_once() -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    slow, lane = Slow(), ToldDeadline()
    leader = threading.Thread(target=cache.fetch, args=("auto", KEY, FAR, slow))
    leader.start()
    assert slow.started.wait(30)
    with ThreadPoolExecutor(1) as threads:
        joiner = threads.submit(cache.fetch, "auto", KEY, lane, never)
        assert lane.waiting.wait(30)
        lane.cancel()
        assert isinstance(joiner.exception(10), Timeout)
    assert not slow.let_go.is_set()
    slow.let_go.set()
    leader.join()


class ToldDeadline(Deadline):
    """Tells when somebody begins to wait by it."""

    def __init__(self) -> None:
        super().__init__(30)
        self.waiting = threading.Event()

    def left(self) -> float:
        self.waiting.set()
        return super().left()


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ModelError("no"), ModelError),
        (Timeout("the leader's own"), ("own", False)),
        (OutOfCalls("the leader's own"), ("own", False)),
    ],
)
def test_a_failure_is_shared_but_not_what_the_leader_alone_ran_out_of(
    failure: Exception, expected: object
) -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    slow, deadline = Slow(failure), ToldDeadline()

    def lead() -> None:
        with pytest.raises(type(failure)):
            cache.fetch("auto", KEY, FAR, slow)

    def join() -> object:
        try:
            return cache.fetch("auto", KEY, deadline, lambda: "own")
        except ModelError as error:
            return type(error)

    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(lead)
        assert slow.started.wait(30)
        joiner = threads.submit(join)
        assert deadline.waiting.wait(30)
        slow.let_go.set()
        leader.result(30)
        assert joiner.result(30) == expected


@pytest.mark.parametrize(
    ("more_s", "caller", "tries"), [(30.0, "a", True), (0.1, "a", False), (0.1, "b", True)]
)
def test_who_has_more_time_or_another_line_than_the_leader_tries_to_have_a_turn_itself(
    more_s: float, caller: str, tries: bool
) -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    slow, deadline = Slow(NoSlotInTime("no slot", 60)), ToldDeadline()
    leading = Deadline(deadline.at - time.monotonic() - more_s)
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(cache.fetch, "auto", KEY, leading, slow, "shop", "a")
        assert slow.started.wait(30)
        joiner = threads.submit(cache.fetch, "auto", KEY, deadline, lambda: "own", "shop", caller)
        assert deadline.waiting.wait(30)
        slow.let_go.set()
        assert isinstance(leader.exception(30), NoSlotInTime)
        error = joiner.exception(30)
    assert error is None if tries else isinstance(error, NoSlotInTime)


def test_who_has_a_long_line_keeps_no_other_from_its_answer() -> None:
    cache: DecisionCache[str] = DecisionCache(10, patience_s=0.01)
    slow = Slow()
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(cache.fetch, "auto", KEY, FAR, slow, "shop", "hostile")
        assert slow.started.wait(30)
        assert cache.fetch("auto", KEY, FAR, lambda: "own", "shop", "honest") == ("own", False)
        slow.let_go.set()
        assert leader.result(30) == ("made", False)


def test_a_caller_waits_for_what_it_asked_itself_as_long_as_it_takes() -> None:
    cache: DecisionCache[str] = DecisionCache(10, patience_s=0.01)
    slow, deadline = Slow(), ToldDeadline()
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(cache.fetch, "auto", KEY, FAR, slow, "shop", "honest")
        assert slow.started.wait(30)
        joiner = threads.submit(cache.fetch, "auto", KEY, deadline, never, "shop", "honest")
        assert deadline.waiting.wait(30)
        assert not wait([joiner], 0.1).done
        slow.let_go.set()
        assert leader.result(30) == ("made", False)
        assert joiner.result(30) == ("made", True)


class HeldDeadline(ToldDeadline):
    """Lets whose leader failed go on when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def check(self) -> None:
        assert self.goes_on.wait(30)


def test_who_asks_the_same_and_leaves_again_and_again_keeps_no_other_from_its_answer() -> None:
    cache: DecisionCache[str] = DecisionCache(10)
    leaves, leads = Slow(Timeout("it has left")), Slow()
    first, second = HeldDeadline(), HeldDeadline()
    own = Slow("own")
    with ThreadPoolExecutor(4) as threads:
        leader = threads.submit(cache.fetch, "auto", KEY, FAR, leaves, "shop", "hostile")
        assert leaves.started.wait(30)
        waiting = [
            threads.submit(cache.fetch, "auto", KEY, deadline, own, "shop", name)
            for deadline, name in ((first, "honest"), (second, "other"))
        ]
        assert first.waiting.wait(30) and second.waiting.wait(30)
        leaves.let_go.set()
        assert isinstance(leader.exception(30), Timeout)
        next_one = threads.submit(cache.fetch, "auto", KEY, FAR, leads, "shop", "hostile")
        assert leads.started.wait(30)
        first.goes_on.set(), second.goes_on.set()
        # Once for both, beside the one that may leave as well.
        assert own.started.wait(30)
        own.let_go.set()
        assert {one.result(30)[0] for one in waiting} == {"own"}
        leads.let_go.set()
        assert next_one.result(30) == ("made", False)
    assert own.made == 1


def test_no_two_lists_of_parts_share_a_key() -> None:
    lists = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("c", "ab"), ()]
    assert len({cache_key(*parts) for parts in lists}) == len(lists)
