from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from svc import limits
from svc.meter import SpareOfPeer
from svc.providers.busy_calls import BusyCall, Peer

PEER = ("lying", "key")


@dataclass
class Seen:
    """A meter that shows what it is told."""

    busy_s: float = 0.0


@dataclass
class Coming:
    """A reply of which nothing has come."""

    came: int = 0
    meter: Seen = field(default_factory=Seen)


@pytest.fixture
def peers() -> dict[Peer, SpareOfPeer]:
    return {}


def test_what_a_call_takes_counts_while_it_lasts(peers: dict[Peer, SpareOfPeer]) -> None:
    coming = Coming()
    call = BusyCall(peers, PEER, coming, lambda: 0.0)
    assert not call.is_too_busy() and not peers
    coming.meter.busy_s = limits.PEER_PROCESSOR_S + limits.EXCHANGE_PROCESSOR_S + 0.1
    assert call.is_too_busy()
    # Another one of the same peer has nothing left, but little that it took.
    assert not BusyCall(peers, PEER, Coming(), lambda: 0.0).is_too_busy()
    assert not peers[PEER].has_left()


def test_what_its_thread_does_after_its_end_does_not_count(peers: dict[Peer, SpareOfPeer]) -> None:
    """The watchdog goes through a list, in which calls stay that have ended."""
    coming = Coming()
    coming.meter.busy_s = limits.EXCHANGE_PROCESSOR_S + 0.01
    call = BusyCall(peers, PEER, coming, lambda: 0.0)
    call.end()
    assert peers[PEER].has_left()
    coming.meter.busy_s += 10 * limits.PEER_PROCESSOR_S
    assert not call.is_too_busy()
    assert peers[PEER].has_left()
