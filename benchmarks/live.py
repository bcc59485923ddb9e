"""Live requests at a steady pace, beside which other work is measured."""

from __future__ import annotations

from benchmarks import callers, decisions
from benchmarks.harness import Process

# The provider of live requests, and how many of these come a second from how many callers.
LIVE_MS, PER_SECOND, CALLERS = 50.0, 30.0, 32


def slowest_ms(service: Process, seconds: float) -> float:
    """The 99th percentile of the requests of so many seconds, in milliseconds."""
    bodies = decisions.bodies(int(PER_SECOND * seconds), debias=False, questions=1)
    url = f"{service.url}/v1/decide"
    return callers.send(url, bodies, callers=CALLERS, per_second=PER_SECOND).percentile_ms(99)
