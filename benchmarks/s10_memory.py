"""S10: memory of the server, idle and after many decisions."""

from __future__ import annotations

from benchmarks import decisions, nginx, servers, wrk
from benchmarks.harness import Benchmark, Options, Result, memory_mb, require

DECISIONS, QUICK = 100_000, 10_000
CONNECTIONS = 16
RUN_S = 10.0  # seconds between two looks at the count


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    wanted = QUICK if options.quick else DECISIONS
    with (
        nginx.provider(decisions.completion()) as provider,
        servers.service(provider) as service,
    ):
        idle = memory_mb(service.pid)
        made = _decide(f"{service.url}/v1/decide", wanted)
        grown = memory_mb(service.pid) - idle
    return Result(f"{idle:.0f} MB / {grown:+.0f} MB after {made:,}")


def _decide(url: str, wanted: int) -> int:
    """Make at least `wanted` different decisions; how many it were."""
    body, made = decisions.body(debias=False), 0
    while made < wanted:
        made += wrk.load(url, body, connections=CONNECTIONS, seconds=RUN_S).requests
    return made


BENCHMARK = Benchmark(
    "S10",
    f"memory: server idle / after {DECISIONS:,} decisions more",
    "90 MB / at most 20 MB more",
    _measure,
)
