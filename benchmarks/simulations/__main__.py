"""Run a simulation and print its table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.harness import run_program
from benchmarks.simulations import calibrators

SIMULATIONS = {"calibrators": calibrators.main}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulations", description=__doc__)
    parser.add_argument("name", choices=SIMULATIONS)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--only", default="", help="a part of the name of what is simulated")
    given = parser.parse_args(arguments)
    SIMULATIONS[given.name](given.repetitions, given.seed, given.only)
    return 0


if __name__ == "__main__":
    run_program(main)
