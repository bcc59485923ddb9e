"""S6: many callers at once, all waiting on a slow provider."""

from __future__ import annotations

from statistics import mean

from benchmarks import callers, decisions, servers
from benchmarks.harness import Benchmark, Options, Process, Result
from benchmarks.slow_provider import slow_provider

PROVIDER_MS = 1000.0
CALLERS = 200  # each with one decision at a time: at best 200 a second
TURNS = 10  # decisions of each caller


def _measure(options: Options) -> Result:
    with slow_provider(PROVIDER_MS) as provider:
        with servers.twin("two_calls", provider) as twin:
            bare = _share(twin)
        with servers.service(provider) as service:
            own = _share(service)
    return Result(f"{own:.0%}", f"{bare:.0%}", f"{own / bare:.2f}")


def _share(server: Process) -> float:
    """The rate of debiased decisions, as a share of one a second for each caller.

    By Little's law that is the provider's time over the mean time of an answer, from the first
    connection on; the start and end of the run, when fewer are waiting, do not lower it.
    """
    bodies = decisions.bodies(CALLERS * TURNS, debias=True)
    calls = callers.send(f"{server.url}/v1/decide", bodies, callers=CALLERS)
    return PROVIDER_MS / 1000 / mean(calls.latencies_s)


BENCHMARK = Benchmark(
    "S6",
    "provider that takes 1 s, 200 callers at once: share of 200 debiased decisions a second",
    "at least 95%",
    _measure,
)
