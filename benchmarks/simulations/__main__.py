"""`python -m benchmarks.simulations NAME`: run one of them; without a name, say which there are."""

from __future__ import annotations

import sys
from importlib import import_module

# What each prints, by the module that has a `run`.
SIMULATIONS = {"councils": "what labels teach a council of models"}


def main(names: list[str]) -> int:
    """Run those named; 2 where one is unknown."""
    if not names or not set(names) <= set(SIMULATIONS):
        for name, what in SIMULATIONS.items():
            print(f"{name:12} {what}")
        return 2 if names else 0
    for name in names:
        import_module(f"benchmarks.simulations.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
