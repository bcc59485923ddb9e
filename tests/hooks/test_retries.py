"""Failed deliveries come again after growing pauses, for three days."""

from __future__ import annotations

import pytest

from svc.hooks.retries import DAY_S, JITTER, PAUSES_S, pause_s


def test_pauses_grow_and_the_last_goes_on() -> None:
    pauses = [pause_s(n, 0.0, 0.0, 0.0) for n in range(1, 9)]
    assert pauses == [*map(float, PAUSES_S), 36_000.0, 36_000.0]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_chance_makes_a_pause_a_little_longer(chance: float) -> None:
    assert pause_s(2, 0.0, 0.0, chance) == pytest.approx(300 * (1 + JITTER * chance))


def test_it_is_given_up_three_days_after_the_first_attempt() -> None:
    now, attempts = 0.0, 1
    while (pause := pause_s(attempts, 0.0, now, 0.0)) is not None:
        now, attempts = now + pause, attempts + 1
    assert 2 * DAY_S < now <= 3 * DAY_S and attempts == 12
