from __future__ import annotations

import pytest

from svc.server.balance import OFFER_S, ConnectionBalancer
from tests.clock import Clock


class Least:
    """How many connections the worker with the fewest has."""

    connections: int | None = 3

    def __call__(self) -> int | None:
        return self.connections


@pytest.mark.parametrize("least", [None, 5, 6])
def test_a_worker_takes_a_connection_when_no_other_has_fewer(least: int | None) -> None:
    assert not ConnectionBalancer(lambda: least, Clock()).offers(5)


def test_a_connection_is_offered_for_a_moment_and_then_taken() -> None:
    clock = Clock()
    balancer = ConnectionBalancer(Least(), clock)
    assert balancer.offers(4)
    clock.now += OFFER_S / 2
    assert balancer.offers(4)
    clock.now += OFFER_S / 2
    assert not balancer.offers(4)
    assert balancer.offers(4)  # the next one has a moment of its own


def test_a_connection_is_taken_as_soon_as_the_others_have_as_many() -> None:
    least, clock = Least(), Clock()
    balancer = ConnectionBalancer(least, clock)
    assert balancer.offers(4)
    least.connections = 4
    assert not balancer.offers(4)


def test_a_connection_that_another_worker_took_leaves_the_next_one_its_whole_moment() -> None:
    clock = Clock()
    balancer = ConnectionBalancer(Least(), clock)
    assert balancer.offers(4)
    balancer.forget()
    clock.now += 60
    assert balancer.offers(4)
