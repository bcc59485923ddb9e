"""Measure what the names on the command line select, or everything, and print a table."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from benchmarks import (
    banking,
    challenged,
    engines,
    jobs,
    learning,
    machine,
    maps,
    plans,
    results,
    retention,
    s1_cached,
    s2_one_call,
    s3_debiased,
    s4_workers,
    s5_added_time,
    s6_slow_provider,
    s7_storage,
    s8_reports,
    s10_memory,
    s12_start,
    s13_size,
    s14_beside_tydex,
    s15_labels,
    s16_dialects,
    s17_client,
    s18_beside_litellm,
    traces,
    wrong_keys,
)
from benchmarks.harness import Benchmark, NotRun, Options, Result, run_program

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        s1_cached.BENCHMARK,
        s2_one_call.BENCHMARK,
        s3_debiased.BENCHMARK,
        s4_workers.BENCHMARK,
        s5_added_time.BENCHMARK,
        s6_slow_provider.BENCHMARK,
        s7_storage.BENCHMARK,
        s8_reports.S8,
        s8_reports.S9,
        s10_memory.BENCHMARK,
        maps.MEMORY,
        s12_start.BENCHMARK,
        s13_size.BENCHMARK,
        s14_beside_tydex.BENCHMARK,
        s15_labels.BENCHMARK,
        s16_dialects.BENCHMARK,
        s17_client.BENCHMARK,
        s18_beside_litellm.BENCHMARK,
        maps.RATE,
        engines.BENCHMARK,
        plans.STAGED,
        plans.COUNCIL,
        plans.RACE,
        jobs.BESIDE,
        jobs.RATE,
        jobs.SUBMIT,
        retention.BENCHMARK,
        challenged.BENCHMARK,
        wrong_keys.BENCHMARK,
        traces.BENCHMARK,
        banking.BENCHMARK,
        learning.BENCHMARK,
    )
}
FAILED = Result("failed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 1 when one of them failed to measure, whatever the figures."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - BENCHMARKS.keys():
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    options = Options(given.seconds, given.rounds, given.quick)
    chosen = [BENCHMARKS[name] for name in given.names or BENCHMARKS]
    measured = [(benchmark, _measured(benchmark, options)) for benchmark in chosen]
    rows = results.cells(measured)
    how = f"{options.rounds} rounds of {options.seconds:g} s" + (", --quick" * options.quick)
    facts = [how, *machine.description()]
    print("\n".join([*facts, "", results.table(rows)]))
    if given.write:
        results.write(rows, list(BENCHMARKS), facts)
    return int(any(result is FAILED for _, result in measured))


def _measured(benchmark: Benchmark, options: Options) -> Result:
    print(f"{benchmark.name}: {benchmark.what} ...", file=sys.stderr, flush=True)
    try:
        return benchmark.measure(options)
    except NotRun as reason:
        return Result(f"not run: {reason}")
    except Exception:  # noqa: BLE001 - the other rows are worth having all the same
        traceback.print_exc()
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"of {', '.join(BENCHMARKS)}; all when none is given",
    )
    parser.add_argument("--seconds", type=float, default=Options().seconds, help="of each run")
    parser.add_argument("--rounds", type=int, default=Options().rounds, help="of twin and service")
    parser.add_argument("--quick", action="store_true", help="fewer decisions in S10")
    parser.add_argument("--write", action="store_true", help=f"update {results.PAGE.name}")
    return parser


if __name__ == "__main__":
    run_program(main)
