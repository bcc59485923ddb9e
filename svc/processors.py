"""How many processors this process may use: what its container allows, not what the machine has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Where Linux shows in which control groups this process is, and what these may take.
_MEMBERSHIP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def usable(
    membership: Path = _MEMBERSHIP, groups: Path = _GROUPS, bound_to: int | None = None
) -> int:
    """Whole processors, at least one: those that it is bound to, and no more than its CPU quota.

    `bound_to` is how many it is bound to, None to ask the system. A part of a processor does not
    count: a process that has used up its quota stands still until the next period, and with it
    every request.
    """
    quotas = [int(quota) for quota in _quotas(membership, groups)]
    return max(1, min([bound_to or _bound_to(), *quotas]))


@cache
def at_start() -> int:
    """What `usable` said when this process, or the one from which it was forked, asked first.

    For rates that processes share, which have to be the same for all of them.
    """
    return usable()


def _bound_to() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(membership: Path, groups: Path) -> Iterator[float]:
    """The quotas, in processors, of the control groups around this process that have one.

    A container often sees its own group as the root, whatever the path of its membership says.
    """
    for root, own in _memberships(membership, groups):
        for folder in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):
                yield _quota(root / folder)


def _memberships(membership: Path, groups: Path) -> Iterator[tuple[Path, Path]]:
    """The root of each hierarchy, and this process's path below it, in both versions of cgroups."""
    with contextlib.suppress(OSError, ValueError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            # In version 2 all controllers are together, and none is named.
            if not controllers or "cpu" in controllers.split(","):
                yield groups / controllers, Path(path.lstrip("/"))


def _quota(group: Path) -> float:
    """In processors. Raises `OSError` or `ValueError` where the group has none."""
    if (limit := group / "cpu.max").exists():
        quota, period = limit.read_text().split()
    else:
        quota = (group / "cpu.cfs_quota_us").read_text()
        period = (group / "cpu.cfs_period_us").read_text()
    processors = int(quota) / int(period)
    if processors <= 0:
        raise ValueError("no quota")
    return processors
