"""Run simulations by name, or all: `python -m benchmarks.simulations promises`."""

from __future__ import annotations

import sys

from benchmarks.simulations import promises

SIMULATIONS = {"promises": promises.main}


if __name__ == "__main__":
    for name in sys.argv[1:] or SIMULATIONS:
        SIMULATIONS[name]()
