"""S4: two workers beside one, with cached decisions; the database and the limits are shared."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, servers, wrk
from benchmarks.harness import Benchmark, Options, Process, Result, require, temporary_directory
from benchmarks.throughput import CONNECTIONS, WARM_UP_S


def _measure(options: Options) -> Result:
    require("nginx", "wrk")
    body = decisions.body(debias=True).replace(wrk.UNIQUE, "2041")

    def rate(server: Process, seconds: float) -> float:
        url = f"{server.url}/v1/decide"
        return wrk.load(url, body, connections=CONNECTIONS, seconds=seconds).rate

    with (
        temporary_directory() as folder,
        nginx.provider(decisions.completion()) as provider,
        servers.service_on(Path(folder) / "one.db", provider) as one,
        servers.service_on(Path(folder) / "two.db", provider, workers=2) as two,
    ):
        for server in (one, two):
            rate(server, WARM_UP_S)
        pairs = [
            (rate(one, options.seconds), rate(two, options.seconds)) for _ in range(options.rounds)
        ]
    ones, twos = zip(*pairs, strict=True)
    ratio = median(two / one for one, two in pairs)
    return Result(f"{median(twos):,.0f}/s", f"{median(ones):,.0f}/s", f"{ratio:.2f}")


BENCHMARK = Benchmark("S4", "cached decisions, two workers ÷ one worker", "at least 1.7", _measure)
