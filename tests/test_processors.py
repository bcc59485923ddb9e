from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.processors import usable

HAS = 6


class Machine:
    """The files by which Linux tells of control groups; `put` bounds one."""

    def __init__(self, folder: Path, memberships: str) -> None:
        self.membership, self.groups = folder / "cgroup", folder / "groups"
        self.membership.write_text(memberships)

    def put(self, file: str, text: str) -> None:
        path = self.groups / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def usable(self) -> int:
        return usable(self.membership, self.groups, HAS)


def test_without_bounds_it_is_what_the_process_is_bound_to(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "0::/user.slice\n")
    assert machine.usable() == HAS
    machine.put("user.slice/cpu.max", "max 100000\n")
    assert machine.usable() == HAS
    machine.put("user.slice/cpu.max", f"{(HAS + 1) * 100_000} 100000\n")
    assert machine.usable() == HAS


@pytest.mark.parametrize("group", ["", "a.slice/", "a.slice/b.scope/"])
def test_the_group_and_all_around_it_are_bounds(tmp_path: Path, group: str) -> None:
    machine = Machine(tmp_path, "0::/a.slice/b.scope\n")
    machine.put(f"{group}cpu.max", "399999 100000\n")
    assert machine.usable() == 3
    machine.put(f"{group}cpu.max", "50000 100000\n")
    assert machine.usable() == 1


def test_the_older_groups_are_read_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "4:memory:/m\n3:cpu,cpuacct:/docker/x\n0::/\n")
    machine.put("cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    machine.put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    assert machine.usable() == HAS
    machine.put("cpu,cpuacct/cpu.cfs_quota_us", "200000\n")
    assert machine.usable() == 2


@pytest.mark.parametrize("memberships", ["", "nonsense", "0::/../..\n"])
def test_what_cannot_be_read_bounds_nothing(tmp_path: Path, memberships: str) -> None:
    machine = Machine(tmp_path, memberships)
    machine.put("cpu.max", "nonsense\n")
    assert machine.usable() == HAS
    assert usable(tmp_path / "absent", tmp_path / "absent", HAS) == HAS


def test_this_process_may_use_one_at_least_and_no_more_than_it_is_bound_to() -> None:
    assert 1 <= usable() <= len(os.sched_getaffinity(0))
