import subprocess
import sys
import threading

import pytest

from svc.ratelimit import Buckets, Exceeded, HalfOf, Pauses
from tests.clock import Clock


class Bucket:
    """One name's bucket."""

    def __init__(self, rpm: float, clock: Clock, name: str = "a", buckets: Buckets | None = None):
        self._buckets = buckets or Buckets(clock)
        self._name, self._rpm = name, rpm

    def reserve(self, max_wait: float = 0.0) -> float:
        return self._buckets.reserve(self._name, self._rpm, max_wait)


def take(bucket: Bucket, at_most: int = 1_000) -> int:
    """How many slots the bucket gives at once."""
    for taken in range(at_most):
        try:
            bucket.reserve()
        except Exceeded:
            return taken
    return at_most


@pytest.mark.parametrize(("rpm", "burst"), [(600, 100), (60, 10), (1, 1), (7, 1), (12, 2)])
def test_a_full_bucket_lets_ten_seconds_worth_through_and_at_least_one(rpm, burst):
    assert take(Bucket(rpm, Clock(1_000.7)), 1_000) == burst


def test_a_spent_bucket_says_when_the_next_slot_is_and_keeps_that_promise():
    clock = Clock(1_000.7)
    bucket = Bucket(60, clock)
    take(bucket, 100)
    with pytest.raises(Exceeded) as error:
        bucket.reserve()
    assert error.value.retry_after == pytest.approx(1.0)
    clock.now += error.value.retry_after
    assert bucket.reserve() == 0.0
    assert take(bucket, 100) == 0


def test_a_refused_reservation_takes_nothing():
    clock = Clock(1_000.7)
    bucket = Bucket(60, clock)
    take(bucket, 100)
    for _ in range(50):
        with pytest.raises(Exceeded):
            bucket.reserve(max_wait=0.5)
    assert bucket.reserve(max_wait=1.1) == pytest.approx(1.0)


def test_those_who_wait_get_one_slot_after_the_other():
    bucket = Bucket(6, Clock(1_000.7))
    assert [bucket.reserve(60) for _ in range(4)] == pytest.approx([0.0, 10.0, 20.0, 30.0])


def test_a_minute_of_greed_gets_the_rate_and_one_burst():
    clock = Clock(1_000.7)
    bucket = Bucket(600, clock)
    taken = 0
    for _ in range(6_000):
        taken += take(bucket, 1_000)
        clock.now += 0.01
    assert taken == pytest.approx(700, abs=1)


def test_an_idle_bucket_saves_no_more_than_its_burst():
    clock = Clock(1_000.7)
    bucket = Bucket(600, clock)
    clock.now += 86_400
    assert take(bucket, 1_000) == 100


def test_many_threads_together_get_no_more_than_the_burst():
    bucket = Bucket(600, Clock(1_000.7))
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.append(take(bucket, 50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 100


def test_each_name_has_a_bucket_of_its_own():
    clock = Clock(1_000.7)
    buckets = Buckets(clock)
    assert [take(Bucket(60, clock, name, buckets)) for name in ("a", "b", "a")] == [10, 10, 0]


def test_a_rate_that_changes_counts_at_once():
    clock = Clock(1_000.7)
    buckets = Buckets(clock)
    assert take(Bucket(600, clock, "a", buckets)) == 100
    assert take(Bucket(12, clock, "a", buckets)) == 2
    clock.now += 5
    assert take(Bucket(12, clock, "a", buckets)) == 1


def test_names_that_stay_away_make_room_and_those_that_owe_do_not():
    clock = Clock(1_000.7)
    buckets = Buckets(clock, slots=64)
    take(Bucket(6, clock, "greedy", buckets))
    for n in range(1_000):
        Bucket(600, clock, f"n{n}", buckets).reserve()
        clock.now += 0.01
    assert take(Bucket(6, clock, "greedy", buckets)) == 1  # for the ten seconds that passed
    assert take(Bucket(6, clock, "greedy", buckets)) == 0


def test_processes_forked_afterwards_share_the_buckets():
    script = """
import os
from svc.ratelimit import Buckets, Exceeded

buckets = Buckets(lambda: 50.0)
read, write = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        taken = 0
        try:
            while True:
                buckets.reserve("a", 6_000)
                taken += 1
        except Exceeded:
            os.write(write, b"%d\\n" % taken)
            os._exit(0)
for _ in range(4):
    os.wait()
print(os.read(read, 1_000).decode())
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    taken = [int(line) for line in found.stdout.split()]
    assert (len(taken), sum(taken)) == (4, 1_000)


def test_a_process_that_is_killed_in_the_middle_blocks_nobody():
    script = """
import os, signal
from svc.ratelimit import Buckets

class Killing:
    fatal = False

    def __call__(self):
        if self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return 50.0

clock = Killing()
buckets = Buckets(clock)
if os.fork() == 0:
    clock.fatal = True
    buckets.reserve("a", 60)
os.wait()
print(buckets.reserve("a", 60))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "0.0\n"


def test_the_longest_wait_counts_until_it_is_over() -> None:
    clock = Clock(1_000.7)
    pauses = Pauses(clock)
    assert pauses.left() == 0.0
    pauses.note(5.0)
    pauses.note(2.0)
    clock.now += 3.0
    assert pauses.left() == pytest.approx(2.0)
    clock.now += 3.0
    assert pauses.left() == 0.0
    pauses.close()


def test_who_gives_way_takes_half_of_a_rate_and_waits_before_it_takes_a_slot_of_the_whole() -> None:
    clock = Clock(1_000.7)
    whole = Buckets(clock)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    half = HalfOf(whole, sleep)
    began = clock.now
    for _ in range(100):
        assert half.reserve("p", 600, 120) == 0.0
    # Fifty at once, as half the rate allows in ten seconds, and then five a second.
    assert clock.now - began == pytest.approx(10, abs=0.5)
    assert whole.reserve("p", 600) == 0.0


def test_who_gives_way_waits_no_longer_than_it_may() -> None:
    clock = Clock(1_000.7)
    whole, slept = Buckets(clock), []
    half = HalfOf(whole, slept.append)
    half.reserve("p", 2)
    with pytest.raises(Exceeded) as refused:
        half.reserve("p", 2, 59)
    assert refused.value.retry_after == pytest.approx(60)
