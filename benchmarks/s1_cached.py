"""S1: a decision of two questions out of the cache, durable, with its audit row."""

from __future__ import annotations

from benchmarks.harness import Benchmark, Options, Result
from benchmarks.throughput import against_twin


def _measure(options: Options) -> Result:
    return against_twin("constant", options, debias=True, cached=True)


BENCHMARK = Benchmark(
    "S1", "cached decision, durable ÷ twin A", "at least 0.55, aim for 0.70", _measure
)
