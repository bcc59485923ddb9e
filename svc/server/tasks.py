"""How many threads for requests fit into what the system allows, which counts threads as processes.

Threads that were needed once stay. Where those of workers could take all that is allowed, the
processes that are begun now and then, for jobs, hooks and retention, would find no room for ever.
"""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from svc import limits

# Each thread for requests may want one for their flows, and some for their calls.
_FOR_A_REQUEST = 2 + limits.CALLS_PER_REQUEST_THREAD

# What each process that asks models may have besides: for rows of jobs, the database, challengers.
_BESIDES = 80

# Of all other processes together: the master, the keeper, hooks, retention, traces.
_OTHERS = 40

# The fewest threads for requests that a worker has.
LEAST = 4

log = logging.getLogger(__name__)


def request_threads(workers: int, allowed: int | None) -> int:
    """The threads for requests of each worker, where `allowed` threads and processes may run.

    None stands for any number. Says in the log where it leaves them fewer than they might have.
    """
    if allowed is None or allowed >= _wanted(workers, limits.REQUEST_THREADS):
        return limits.REQUEST_THREADS
    if allowed < _wanted(workers, LEAST):
        log.error(
            "the system allows %d threads and processes: jobs, hooks and retention may find no "
            "room beside %d workers, which would take %d",
            *(allowed, workers, _wanted(workers, LEAST)),
        )
        return LEAST
    threads = ((allowed - _OTHERS) // (workers + 1) - _BESIDES) // _FOR_A_REQUEST
    log.warning(
        "the system allows %d threads and processes: each worker answers %d requests at a time, "
        "for %d of which %d would be needed",
        *(allowed, threads, limits.REQUEST_THREADS, _wanted(workers, limits.REQUEST_THREADS)),
    )
    return threads


def allowed_here() -> int | None:
    """How many threads and processes this process's user and control group may have.

    None where there is no bound. One of a control group that cannot be seen from here is not known.
    """
    return min((*_of_user(), *_of_groups()), default=None)


def _wanted(workers: int, threads: int) -> int:
    # One process more runs jobs.
    return (workers + 1) * (threads * _FOR_A_REQUEST + _BESIDES) + _OTHERS


def _of_user() -> Iterator[int]:
    """See `RLIMIT_NPROC` in getrlimit(2); it does not bind root."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() and soft != resource.RLIM_INFINITY:
        yield soft


def _of_groups(
    of_process: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """The bounds of the control group and those above it, see "PID" in the kernel's cgroup-v2."""
    for line in _lines(of_process):
        number, controllers, path = line.split(":", 2)
        if number == "0" or "pids" in controllers.split(","):
            root = groups / controllers
            group = root / path.lstrip("/")
            for one in (group, *group.parents):
                yield from (int(bound) for bound in _lines(one / "pids.max") if bound != "max")
                if one == root:
                    break


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
