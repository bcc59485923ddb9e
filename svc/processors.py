"""How many processors this process may use: what its container allows, not what the machine has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# Where Linux shows which group of processes this one is in, and what the groups may take.
_MEMBERSHIP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def usable(
    membership: Path = _MEMBERSHIP, groups: Path = _GROUPS, bound_to: int | None = None
) -> int:
    """Whole processors, at least one: those it is bound to, and no more than its time is worth.

    `bound_to` is how many it is bound to, None to ask the system.
    A part of a processor does not count. A process that has used up its time stands still until it
    gets more, and with it every request.
    """
    shares = [int(share) for share in _shares(membership, groups)]
    return max(1, min([bound_to or _bound_to(), *shares]))


def _bound_to() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shares(membership: Path, groups: Path) -> Iterator[float]:
    """What each group around this process may take of processors, where it is bounded.

    A container often sees its own group as the uppermost one, whatever its path is outside.
    """
    for root, own in _memberships(membership, groups):
        for folder in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):
                yield _share(root / folder)


def _memberships(membership: Path, groups: Path) -> Iterator[tuple[Path, Path]]:
    """The uppermost group, and the path below it, of both versions of control groups."""
    with contextlib.suppress(OSError, ValueError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            # In version 2 all controllers are together, and none is named.
            if not controllers or "cpu" in controllers.split(","):
                yield groups / controllers, Path(path.lstrip("/"))


def _share(group: Path) -> float:
    """Raises `OSError` or `ValueError` where the group is not bounded."""
    if (bound := group / "cpu.max").exists():
        quota, period = bound.read_text().split()
    else:
        quota = (group / "cpu.cfs_quota_us").read_text()
        period = (group / "cpu.cfs_period_us").read_text()
    share = int(quota) / int(period)
    if share <= 0:
        raise ValueError("no bound")
    return share
