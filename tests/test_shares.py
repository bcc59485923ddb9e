import threading

import pytest

from svc.deadline import Deadline
from svc.errors import Timeout
from svc.shares import Shares


def taken(shares: Shares, caller: str | None) -> int:
    """How many a caller gets that takes all it can."""
    count = 0
    while shares.take(caller):
        count += 1
    return count


def test_a_caller_gets_half_and_leaves_others_their_quarter() -> None:
    shares = Shares(16)
    assert taken(shares, "greedy") == 8
    assert taken(shares, "next") == 4
    assert taken(shares, "third") == 4
    assert taken(shares, "fourth") == 0
    shares.give_back("greedy")
    assert not shares.take("greedy")
    assert shares.take("fourth")


def test_who_has_no_name_has_the_whole() -> None:
    assert taken(Shares(16), None) == 16


def test_what_is_larger_than_a_share_goes_alone() -> None:
    shares = Shares(16)
    assert shares.take("a", 40)
    assert not shares.take("b")
    shares.give_back("a", 40)
    assert shares.take("b", 3)
    assert not shares.take("a", 40)


def test_the_smallest_pool_serves_everybody() -> None:
    shares = Shares(1)
    assert shares.take("a")
    assert not shares.take("b")
    shares.give_back("a")
    assert shares.take("b")


def test_who_waits_for_a_share_gets_it_or_gives_up_at_the_deadline() -> None:
    shares, waiting = Shares(4), threading.Event()
    assert taken(shares, "a") == 2
    with pytest.raises(Timeout), shares.held("a", 2, Deadline(0.2)):
        pass

    def later() -> None:
        waiting.wait(10)
        shares.give_back("a", 2)

    thread = threading.Thread(target=later)
    thread.start()
    waiting.set()
    with shares.held("a", 2, Deadline(30)):
        assert not shares.take("a")
    thread.join()
    assert taken(shares, "a") == 2
