"""What a thread takes of a processor, counted by itself and by others."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from svc import limits
from svc.meter import NOTICED_S, Meter, Spare, SpareOfPeer
from tests.busy import use_processor

needs_clocks = pytest.mark.skipif(
    not hasattr(time, "pthread_getcpuclockid"), reason="the system shows no thread's time to others"
)


def test_it_counts_from_when_it_is_told_to_go_on_until_it_is_told_to_pause() -> None:
    used: list[float] = []
    meter = Meter(used.append, lambda: True)
    use_processor(0.02)
    meter.count()
    assert used == []
    for total in (0.02, 0.04):
        meter.go_on()
        use_processor(0.02)
        meter.pause()
        use_processor(0.02)
        meter.count()
        assert total <= sum(used) < total + 0.015


@needs_clocks
def test_another_thread_sees_one_that_takes_more_than_there_is() -> None:
    spare, seen = Spare(0.1), threading.Event()
    made: list[Meter] = []
    there = threading.Event()

    def busy() -> None:
        made.append(Meter(spare.use, spare.has_left))
        made[0].go_on()
        there.set()
        while not seen.is_set():
            pass
        made[0].pause()

    thread = threading.Thread(target=busy)
    thread.start()
    assert there.wait(30)
    give_up_at = time.monotonic() + 30
    while not made[0].look():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    assert not spare.has_left()
    seen.set()
    thread.join()
    # Its clock is gone with it.
    assert not made[0].look()


@needs_clocks
def test_one_that_takes_little_is_not_seen_though_others_have_taken_all() -> None:
    meter = Meter(lambda _seconds: None, lambda: False)
    meter.go_on()
    assert meter.is_short and not meter.look()
    use_processor(2 * NOTICED_S)
    assert meter.look()
    meter.pause()
    assert not meter.look()


def test_what_has_come_allows_more_up_to_the_most() -> None:
    spare = Spare(0.25)
    spare.use(0.5)
    assert not spare.has_left()
    spare.came(1_250_000)
    assert not spare.has_left()
    spare.came(2_500_000)
    assert spare.has_left()
    spare.came(100_000_000)
    spare.use(0.25)
    assert not spare.has_left()


def test_what_a_peer_takes_beyond_what_is_usual_comes_back_with_time() -> None:
    now = [0.0]
    peer = SpareOfPeer(usual_s=0.1, most_s=0.5, back=0.01, clock=lambda: now[0])
    for _ in range(100):
        peer.begin()
        peer.use(0.1)
    assert peer.has_left() and peer.wait_s() == 0
    exchange = Spare(0.25, peer)
    exchange.use(0.65)
    assert not exchange.has_left() and not peer.has_left()
    assert peer.wait_s() == pytest.approx(25.0)
    now[0] += 20
    assert peer.wait_s() == pytest.approx(5.0)
    exchange.came(1_500_000)
    assert peer.has_left() and peer.wait_s() == 0
    now[0] += 1_000
    peer.use(0.49)
    assert peer.has_left()
    peer.use(0.02)
    assert not peer.has_left()


def test_no_peer_rests_longer_than_a_few_minutes() -> None:
    peer = SpareOfPeer(most_s=0.5, back=0.01, clock=lambda: 0.0)
    for _ in range(60):
        peer.use(1.0)
    assert peer.wait_s() == pytest.approx(limits.PEER_REST_S)


@pytest.mark.parametrize("counted", [True, False])
def test_collections_of_garbage_count_where_they_shall(counted: bool) -> None:
    """They look through all that a process has."""
    used: list[float] = []
    meter = Meter(used.append, lambda: True, with_collections=counted)
    kept = [[number] for number in range(300_000)]
    meter.go_on()
    before = time.thread_time()
    for _ in range(5):
        gc.collect()
    took_s = time.thread_time() - before
    meter.count()
    assert len(kept) == 300_000 and took_s > 0.02
    assert meter.busy_s < took_s / 10
    assert sum(used) >= took_s if counted else sum(used) == meter.busy_s
