"""S5: what the service adds to the time that a provider takes."""

from __future__ import annotations

from benchmarks import callers, decisions, servers
from benchmarks.harness import Benchmark, Options, Process, Result
from benchmarks.slow_provider import slow_provider

PROVIDER_MS = 50.0
PER_SECOND = 50.0  # decisions, each debiased: two calls at once
CALLERS = 32
WARM_UP = 50  # decisions


def _measure(options: Options) -> Result:
    with (
        slow_provider(PROVIDER_MS) as provider,
        servers.twin("two_calls", provider) as twin,
        servers.service(provider) as service,
    ):
        bare, own = _added(twin, options), _added(service, options)
    ratios = f"{own[0] / bare[0]:.1f} / {own[1] / bare[1]:.1f}"
    return Result(_words(own), _words(bare), ratios)


def _added(server: Process, options: Options) -> tuple[float, float]:
    """Median and 99th percentile of the time beyond the provider's, in milliseconds."""
    url = f"{server.url}/v1/decide"
    count = int(PER_SECOND * options.seconds * options.rounds)
    for number in (WARM_UP, count):
        bodies = decisions.bodies(number, debias=True)
        calls = callers.send(url, bodies, callers=CALLERS, per_second=PER_SECOND)
    return calls.percentile_ms(50) - PROVIDER_MS, calls.percentile_ms(99) - PROVIDER_MS


def _words(added: tuple[float, float]) -> str:
    return f"{added[0]:.1f} / {added[1]:.1f} ms"


BENCHMARK = Benchmark(
    "S5",
    "time added to a provider that takes 50 ms, at 50 debiased decisions a second: median / 99%",
    "6 / 25 ms",
    _measure,
)
