from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.batch.children import ChildLost, Work, forked


@dataclass
class Worker:
    work: Work


@contextmanager
def doubling(threads: int) -> Iterator[Worker]:
    together = threading.Barrier(threads, timeout=10)

    def work(item: int) -> tuple[int, int]:
        together.wait()
        return os.getpid(), 2 * item

    yield Worker(work)


@contextmanager
def ending(threads: int) -> Iterator[Worker]:
    yield Worker(lambda _: os._exit(1))


def children() -> set[int]:
    """The children of this process that it has not waited for."""
    found: set[int] = set()
    for one in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found |= set(map(int, one.read_text().split()))
    return found


@pytest.fixture(autouse=True)
def _no_child_stays() -> Iterator[None]:
    """Each test waits for all processes that it has started."""
    before = children()
    yield
    assert children() <= before


def test_every_process_works_on_its_number_of_items_at_once() -> None:
    with forked([2, 2], doubling) as children:
        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(children.work, range(4)))
    assert [result for _, result in results] == [0, 2, 4, 6]
    pids = [pid for pid, _ in results]
    assert len(set(pids)) == 2 and os.getpid() not in pids


def test_a_process_that_is_lost_is_an_error_and_no_wait() -> None:
    with forked([1], ending) as children:
        for _ in range(2):
            with pytest.raises(ChildLost, match="ended unexpectedly"):
                children.work(1)


def test_a_process_that_cannot_begin_is_lost() -> None:
    @contextmanager
    def failing(threads: int) -> Iterator[Any]:
        raise OSError("no memory")
        yield

    with forked([1], failing) as children:
        with pytest.raises(ChildLost):
            children.work(1)


def test_cutting_ends_processes_that_are_at_work() -> None:
    @contextmanager
    def waiting(threads: int) -> Iterator[Worker]:
        yield Worker(lambda _: threading.Event().wait())

    with forked([1, 1], waiting) as children, ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(children.work, 1)
        children.cut()
        assert isinstance(under_way.exception(timeout=10), ChildLost)
