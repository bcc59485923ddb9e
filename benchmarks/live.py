"""Live requests at a steady pace, beside which other work is measured."""

from __future__ import annotations

from benchmarks import callers, decisions
from benchmarks.harness import Process

# How long the provider takes, how many requests are due a second, and how many callers send them.
LIVE_MS, PER_SECOND, CALLERS = 50.0, 30.0, 32


def p99_ms(service: Process, seconds: float) -> float:
    """The 99th percentile of the latencies of requests over so many seconds, in milliseconds."""
    bodies = decisions.bodies(int(PER_SECOND * seconds), debias=False, questions=1)
    url = f"{service.url}/v1/decide"
    return callers.send(url, bodies, callers=CALLERS, per_second=PER_SECOND).percentile_ms(99)
