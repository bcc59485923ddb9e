"""Holds the writer up, so that what a test writes meanwhile shares one transaction."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from svc.store.writer import Writer

TIMEOUT_S = 20.0
CALLERS = 40

Enqueue = Callable[..., "Future[Any]"]


def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.001)


def waiting(writer: Writer) -> int:
    return writer._jobs.qsize()


@contextlib.contextmanager
def held_up(writer: Writer) -> Iterator[Enqueue]:
    """Lend `enqueue(fn, *arguments)`, which calls `fn` in a thread and sees its write waiting."""
    entered, go = threading.Event(), threading.Event()

    def hold(_connection: object, items: Any) -> Any:
        entered.set()
        assert go.wait(TIMEOUT_S)
        return items

    def enqueue(fn: Callable[..., Any], *arguments: Any) -> Future[Any]:
        before = waiting(writer)
        future = pool.submit(fn, *arguments)
        until(lambda: waiting(writer) > before)
        return future

    with ThreadPoolExecutor(CALLERS) as pool:
        pool.submit(writer.write, hold, None, TIMEOUT_S)
        try:
            assert entered.wait(TIMEOUT_S)
            yield enqueue
        finally:
            go.set()
