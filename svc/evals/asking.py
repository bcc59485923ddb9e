"""Asks about many rows at the same time, and shows the progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from svc.batch import Progress, Workers


class Outcome(Protocol):
    """The result of a job: its costs, and the message of what failed."""

    @property
    def error(self) -> str: ...
    @property
    def cost_usd(self) -> float: ...


J = TypeVar("J")
R = TypeVar("R", bound=Outcome)


def results_of(
    jobs: Sequence[J],
    work: Callable[[J], R],
    threads: int,
    cut: Callable[[], None],
    unit: str = "rows",
) -> Generator[tuple[J, R], None, None]:
    """Each job with its result, in the order of the jobs; close it to end what is under way.

    `unit` is what the progress counts. `cut` makes every `work` under way end soon. Raises what
    `work` does.
    """
    progress = Progress(sys.stderr, len(jobs), 0, sys.stderr.isatty(), unit=unit)
    failed, cost_usd = 0, 0.0
    try:
        with Workers(iter(jobs), work, threads, cut) as results:
            for done, (job, outcome) in enumerate(zip(jobs, results, strict=False), 1):
                failed += bool(outcome.error)
                cost_usd += outcome.cost_usd
                progress.show(done, failed, cost_usd)
                yield job, outcome
    finally:
        progress.end()
