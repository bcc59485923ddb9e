"""Asks about many rows at the same time, and shows the progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from svc.batch import Progress, Workers
from svc.evals.scoring import Scored

J = TypeVar("J")


def asked(
    jobs: Sequence[J], work: Callable[[J], Scored], threads: int, cut: Callable[[], None]
) -> Generator[tuple[J, Scored], None, None]:
    """Each job with its result, in the order of the jobs; close it to end what is under way.

    `cut` makes every `work` under way end soon. Raises what `work` does.
    """
    progress = Progress(sys.stderr, len(jobs), 0, sys.stderr.isatty(), unit="rows")
    failed, cost_usd = 0, 0.0
    try:
        with Workers(iter(jobs), work, threads, cut) as results:
            for done, (job, scored) in enumerate(zip(jobs, results, strict=False), 1):
                failed += bool(scored.error)
                cost_usd += scored.cost_usd
                progress.show(done, failed, cost_usd)
                yield job, scored
    finally:
        progress.end()
