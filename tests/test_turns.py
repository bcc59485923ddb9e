"""Turns of keys; what concerns processes forks, in a process of its own."""

from __future__ import annotations

import pytest

from svc import limits
from svc.turns import KEYS, AllTaken, Turns
from tests.clock import Clock
from tests.test_sharing import run


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> Turns:
    return Turns(clock)


def refused(turns: Turns, key_id: str, most: int | None) -> AllTaken:
    with pytest.raises(AllTaken) as error:
        turns.take(key_id, most)
    return error.value


@pytest.mark.parametrize("before", [0, KEYS], ids=["told apart", "beyond those"])
def test_a_key_has_as_many_requests_at_a_time_as_it_may_and_others_have_theirs(
    turns: Turns, before: int
) -> None:
    for number in range(before):
        turns.give_back(str(number), turns.take(str(number), 1))
    first, _ = turns.take("a", 2), turns.take("a", 2)
    assert refused(turns, "a", 2).most == 2
    turns.take("b", 1)
    turns.give_back("a", first)
    turns.take("a", 2)
    refused(turns, "a", 2)


def test_the_default_is_a_quarter_of_the_threads(turns: Turns) -> None:
    for _ in range(limits.REQUEST_THREADS // 4):
        turns.take("a", None)
    assert refused(turns, "a", None).most == limits.REQUEST_THREADS // 4


def test_who_is_refused_hears_when_the_oldest_request_will_have_ended(
    turns: Turns, clock: Clock
) -> None:
    usual = turns.take("a", 1)
    clock.now += 8
    turns.give_back("a", usual)
    turns.take("a", 1)
    clock.now += 3
    assert refused(turns, "a", 1).retry_after == pytest.approx(5)
    clock.now += 27
    assert refused(turns, "a", 1).retry_after == pytest.approx(30)
    clock.now += 70
    assert refused(turns, "a", 1).retry_after == pytest.approx(limits.REQUEST_DEADLINE_S - 100)


def test_requests_of_other_processes_count_until_these_end() -> None:
    script = """
from svc.turns import AllTaken, Turns
turns, (read, write) = Turns(), os.pipe()

def hold():
    for _ in range(3):
        turns.take("a", 3)
    os.write(write, b"held")
    signal.pause()

holder = forked(hold)
os.read(read, 4)
turns.take("b", 1)
try:
    turns.take("a", 3)
except AllTaken:
    print("refused")
os.kill(holder, signal.SIGKILL)
os.waitpid(holder, 0)
turns.take("a", 3)
print("taken")
"""
    assert run(script).split() == ["refused", "taken"]


def test_a_process_beyond_those_with_a_row_leaves_the_counts_of_others_alone() -> None:
    script = """
from svc.turns import PROCESSES, AllTaken, Turns
turns, (read, write), (told, tell) = Turns(), os.pipe(), os.pipe()

def hold():
    signal.alarm(50)
    turn = turns.take("a", 1_000)
    os.write(write, b"x")
    os.read(told, 1)
    turns.give_back("a", turn)
    os.write(write, b"x")
    signal.pause()

children = []
for _ in range(PROCESSES):
    children.append(forked(hold))
    os.read(read, 1)
turn = turns.take("a", 1)
try:
    turns.take("a", 1)
except AllTaken:
    print("refused")
for _ in children:
    os.write(tell, b"x")
    os.read(read, 1)
turns.give_back("a", turn)
print("counted")
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
    assert run(script).split() == ["refused", "counted"]
