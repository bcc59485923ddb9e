"""How many threads for requests fit into what the system allows."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from svc import limits
from svc.server import tasks


@pytest.mark.parametrize("allowed", [None, 3_400, 16_384])
def test_where_there_is_room_workers_have_all_threads(
    caplog: pytest.LogCaptureFixture, allowed: int | None
) -> None:
    assert tasks.request_threads(2, allowed) == limits.REQUEST_THREADS
    assert not caplog.records


@pytest.mark.parametrize(
    ("workers", "allowed", "threads"), [(1, 300, 12), (2, 1_024, 62), (8, 4_915, 115), (2, 400, 10)]
)
def test_where_there_is_less_workers_and_jobs_have_equal_shares(
    caplog: pytest.LogCaptureFixture, workers: int, allowed: int, threads: int
) -> None:
    assert tasks.request_threads(workers, allowed) == threads
    assert f"the system allows {allowed} threads and processes" in caplog.text


def test_where_it_is_too_little_the_log_says_what_may_not_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert tasks.request_threads(2, 120) == tasks.LEAST
    assert "jobs, hooks and retention may find no room beside 2 workers" in caplog.text


def test_the_bounds_of_a_control_group_and_of_those_above_it_count(tmp_path: Path) -> None:
    inner = tmp_path / "groups" / "system.slice" / "svc.service"
    inner.mkdir(parents=True)
    (inner / "pids.max").write_text("max\n")
    (inner.parent / "pids.max").write_text("4915\n")
    (tmp_path / "pids.max").write_text("7\n")
    of_process = tmp_path / "cgroup"
    of_process.write_text("0::/system.slice/svc.service\n")
    assert list(tasks._of_groups(of_process, tmp_path / "groups")) == [4_915]


def test_those_of_the_first_version_have_a_folder_for_processes(tmp_path: Path) -> None:
    group = tmp_path / "groups" / "pids" / "box"
    group.mkdir(parents=True)
    (group / "pids.max").write_text("200\n")
    of_process = tmp_path / "cgroup"
    of_process.write_text("4:memory:/box\n3:pids:/box\n")
    assert list(tasks._of_groups(of_process, tmp_path / "groups")) == [200]


def test_where_nothing_can_be_read_there_is_no_bound_of_groups(tmp_path: Path) -> None:
    assert list(tasks._of_groups(tmp_path / "cgroup", tmp_path)) == []


def test_what_the_user_may_have_counts_but_for_root() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    found = list(tasks._of_user())
    assert found in ([], [soft])
    assert tasks.allowed_here() is None or hard
