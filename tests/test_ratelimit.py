import threading

import pytest

from svc.ratelimit import Exceeded, TokenBucket, TokenBuckets


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.7

    def __call__(self) -> float:
        return self.now


def take(bucket: TokenBucket, at_most: int) -> int:
    """How many slots the bucket gives at once."""
    for taken in range(at_most):
        try:
            bucket.reserve()
        except Exceeded:
            return taken
    return at_most


@pytest.mark.parametrize(("rpm", "burst"), [(600, 100), (60, 10), (1, 1), (7, 1), (12, 2)])
def test_a_full_bucket_lets_ten_seconds_worth_through_and_at_least_one(rpm, burst):
    assert take(TokenBucket(rpm, Clock()), 1_000) == burst


def test_a_spent_bucket_says_when_the_next_slot_is_and_keeps_that_promise():
    clock = Clock()
    bucket = TokenBucket(60, clock)
    take(bucket, 100)
    with pytest.raises(Exceeded) as error:
        bucket.reserve()
    assert error.value.retry_after == pytest.approx(1.0)
    clock.now += error.value.retry_after
    assert bucket.reserve() == 0.0
    assert take(bucket, 100) == 0


def test_a_refused_reservation_takes_nothing():
    clock = Clock()
    bucket = TokenBucket(60, clock)
    take(bucket, 100)
    for _ in range(50):
        with pytest.raises(Exceeded):
            bucket.reserve(max_wait=0.5)
    assert bucket.reserve(max_wait=1.1) == pytest.approx(1.0)


def test_those_who_wait_get_one_slot_after_the_other():
    bucket = TokenBucket(6, Clock())
    assert [bucket.reserve(60) for _ in range(4)] == pytest.approx([0.0, 10.0, 20.0, 30.0])


def test_a_minute_of_greed_gets_the_rate_and_one_burst():
    clock = Clock()
    bucket = TokenBucket(600, clock)
    taken = 0
    for _ in range(6_000):
        taken += take(bucket, 1_000)
        clock.now += 0.01
    assert taken == pytest.approx(700, abs=1)


def test_an_idle_bucket_saves_no_more_than_its_burst():
    clock = Clock()
    bucket = TokenBucket(600, clock)
    clock.now += 86_400
    assert take(bucket, 1_000) == 100


def test_many_threads_together_get_no_more_than_the_burst():
    bucket = TokenBucket(600, Clock())
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.append(take(bucket, 50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 100


def take_of(buckets: TokenBuckets, name: str, rpm: float, at_most: int = 1_000) -> int:
    """How many slots of a name there are at once."""
    for taken in range(at_most):
        try:
            buckets.take(name, rpm)
        except Exceeded:
            return taken
    return at_most


def test_each_name_has_a_bucket_of_its_own():
    buckets = TokenBuckets(Clock())
    assert [take_of(buckets, name, 60) for name in ("a", "b", "a")] == [10, 10, 0]


def test_a_rate_that_changes_counts_at_once():
    clock = Clock()
    buckets = TokenBuckets(clock)
    assert take_of(buckets, "a", 600) == 100
    assert take_of(buckets, "a", 12) == 2
    clock.now += 5
    assert take_of(buckets, "a", 12) == 1


def test_names_that_stay_away_are_forgotten_and_those_that_owe_are_not():
    clock = Clock()
    buckets = TokenBuckets(clock)
    take_of(buckets, "greedy", 6)
    for n in range(1_000):
        buckets.take(f"n{n}", 600)
        clock.now += 0.001
    assert len(buckets) <= 102
    assert take_of(buckets, "greedy", 6) == 0
    clock.now += 60
    buckets.take("last", 600)
    assert len(buckets) == 1


def test_many_threads_together_get_no_more_of_a_name_than_its_burst():
    buckets = TokenBuckets(Clock())
    taken: list[int] = []
    threads = [
        threading.Thread(target=lambda: taken.append(take_of(buckets, "a", 600, 50)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 100
