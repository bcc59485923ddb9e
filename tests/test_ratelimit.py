import threading

import pytest

from svc.ratelimit import Exceeded, TokenBucket


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
