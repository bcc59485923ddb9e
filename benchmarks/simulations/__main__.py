"""Run the simulations that the command line names, or all: `python -m benchmarks.simulations`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.simulations import drift, rates

# Each prints a table; it is given the number of repetitions and the first seed.
SIMULATIONS: dict[str, Callable[[int, int], None]] = {
    "drift": drift.run,
    "rates": rates.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(SIMULATIONS))
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if unknown := set(given.names) - SIMULATIONS.keys():
        parser.error(f"no simulation {', '.join(sorted(unknown))}")
    for name in given.names or SIMULATIONS:
        SIMULATIONS[name](given.repetitions, given.seed)


if __name__ == "__main__":
    main()
