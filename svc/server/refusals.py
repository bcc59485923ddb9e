"""Responses to callers that are refused, or not known, and ask on and on wait before they leave.

They take no thread meanwhile. Such a response takes two to three milliseconds. Callers that send
their next request as soon as they have one would have a worker make hundreds a second, and others
wait behind them.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv6Address
from typing import Any

from svc import limits, processors
from svc.ratelimit import Buckets, Exceeded

# The statuses of callers that are not known, may not do this, or ask too much.
_STATUSES = ("401", "403", "429")

# Who asks again so soon after an answer on the same connection is no monitor, and who asks after so
# long may be any. In seconds.
JUST_NOW_S, CALM_S = 0.08, 0.8

# The buckets of one worker: each kind has its own, and each address.
_SLOTS = 4_096

# What is sent at once of each kind, a minute. Monitors that ask in rapid succession are told apart
# by how rapid that is, so that others who look without end do not hold them up.
_REFUSALS, _LOOKS, _FIRST_LOOKS = "refusals", "looks", "first looks"
_ALL_FIRST_LOOKS = "first looks of all"
_QUICK_LOOKS = {0.2: "looks in 0.2 s", 0.4: "looks in 0.4 s", CALM_S: "quick looks"}
_AT_ONCE = {
    _REFUSALS: limits.REFUSALS_AT_ONCE,
    _LOOKS: limits.LOOKS_AT_ONCE,
    _FIRST_LOOKS: limits.FIRST_LOOKS_AT_ONCE,
    _ALL_FIRST_LOOKS: limits.LOOKS_AT_ONCE,
    **dict.fromkeys(_QUICK_LOOKS.values(), limits.QUICK_LOOKS_AT_ONCE),
}

# The bucket of those that were held.
_HELD = "held"


class Refusals:
    """Says which responses wait, and holds the connections of those that do."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock, self._own = clock, Buckets(clock, slots=_SLOTS)
        # A bucket whose rate changes begins anew.
        self._processors = processors.at_start()
        # Those of all workers, once these share some. Many workers have few processors together.
        self.shared: Buckets | None = None
        # A heap of what waits: the time at which it leaves, and its number.
        self._held: list[tuple[float, int, Any]] = []
        self._number = itertools.count()

    def waits(self, status: str, known: bool = False) -> bool:
        """Whether a response with this status line waits, to a caller who is `known` or not.

        What goes well waits for nobody, as it may be long: the application bounds how often.
        """
        refused = status[:3] in _STATUSES or not (known or status.startswith("2"))
        return refused and self._exceeds(_REFUSALS)

    def look_waits(self, after_s: float, address: str = "") -> bool:
        """The same for a look at the server, so long after the connection had its last answer.

        Monitors may open a connection for each: of these every `address` has some of its own.

        Those who ask again as soon as they have their answer wait as who is refused does, so that
        monitors beside them do not wait.
        """
        kind = _kind_of_look(after_s)
        if kind != _FIRST_LOOKS:
            return self._exceeds(kind)
        return self._exceeds(kind, address) or self._exceeds(_ALL_FIRST_LOOKS)

    def end_waits(self) -> bool:
        """Whether the end of a connection waits on which no request came."""
        return self._exceeds(_REFUSALS)

    def held_s(self, is_calm: bool = False) -> float:
        """How long something is to be held; looks that are calm do not queue for their turn."""
        return max(limits.REFUSAL_HELD_S, 0.0 if is_calm else self._turn_in())

    def hold(self, held: Any, seconds: float) -> None:
        """Keep something until its response leaves."""
        heapq.heappush(self._held, (self._clock() + seconds, next(self._number), held))

    def due_in(self) -> float:
        """The seconds until the next one leaves; infinity where none waits."""
        return self._held[0][0] - self._clock() if self._held else math.inf

    def leaving(self, at_once: bool = False) -> Iterator[Any]:
        """What leaves now, in order: what is due, or everything."""
        while self._held and (at_once or self.due_in() <= 0):
            yield heapq.heappop(self._held)[2]

    def _turn_in(self) -> float:
        """The seconds after which one more may leave that is no look."""
        per_minute = limits.HELD_A_PROCESSOR * self._processors
        buckets = self._own if self.shared is None else self.shared
        try:
            return buckets.reserve(_HELD, per_minute, limits.MOST_HELD_S, at_once=1)
        except Exceeded:
            return limits.MOST_HELD_S

    def _exceeds(self, kind: str, address: str = "") -> bool:
        """Whether there are more of a kind in this worker, or in all of them for each processor."""
        per_minute = _AT_ONCE[kind]
        try:
            _reserve(self._own, f"{kind} {address}", per_minute)
            if self.shared is not None:
                for_all = per_minute / 2 * self._processors
                _reserve(self.shared, f"all {kind} {address}", for_all)
        except Exceeded:
            return True
        return False


def origin(peer: object) -> str:
    """Where a connection with this peer comes from; nothing where that is a socket of the system.

    Of IPv6 it is the network, as whoever has one address there has 2^64. A socket for both families
    shows addresses of IPv4 as ones of a single network of IPv6; these count one by one.
    """
    if not isinstance(peer, tuple):
        return ""
    address = str(peer[0]).partition("%")[0]
    if ":" not in address:
        return address
    of_6 = IPv6Address(address)
    return str(of_6.ipv4_mapped or of_6.packed[:8].hex())


def _kind_of_look(after_s: float) -> str:
    """The kind of a look that comes so long after another one on its connection."""
    if math.isinf(after_s):
        return _FIRST_LOOKS
    if after_s < JUST_NOW_S:
        return _REFUSALS
    return next((kind for within_s, kind in _QUICK_LOOKS.items() if after_s < within_s), _LOOKS)


def _reserve(buckets: Buckets, kind: str, per_minute: float) -> None:
    """Take one of a kind. Raises `Exceeded`."""
    buckets.reserve(kind, per_minute, at_once=int(per_minute * limits.REFUSALS_BURST_S / 60))
