"""Run the simulations that the command line names, or all, and print their tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks.harness import run_program
from benchmarks.simulations import (
    calibrators,
    challengers,
    councils,
    drift,
    promises,
    rates,
    review,
)

# Those that are told how often to repeat, and the first seed.
SEEDED: dict[str, Callable[[int, int], None]] = {
    "calibrators": calibrators.main,
    "drift": drift.run,
    "rates": rates.run,
    "review": review.run,
}

# Those whose tables say so themselves.
FIXED: dict[str, Callable[[], None]] = {
    "challengers": challengers.run,
    "councils": councils.run,
    "promises": promises.main,
}
NAMES = sorted([*SEEDED, *FIXED])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no simulation {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in given.names or NAMES:
        if name in SEEDED:
            SEEDED[name](given.repetitions, given.seed)
        else:
            FIXED[name]()
    return 0


if __name__ == "__main__":
    run_program(main)
