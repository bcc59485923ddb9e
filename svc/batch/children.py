"""Work in further processes, because one interpreter uses no more than one core."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NoReturn, Protocol

from svc.errors import SvcError

# These are for the parent, which ends its children.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Work = Callable[[Any], Any]


class ChildWork(Protocol):
    """The object that does the work of a child."""

    @property
    def work(self) -> Work: ...


# Opens the worker of a child for so many items at once.
Opened = Callable[[int], AbstractContextManager[ChildWork]]


class ChildLost(SvcError):
    """A process that did part of the work has ended."""


class Children:
    """Forked processes, each with a connection for every item that it works on at once."""

    def __init__(self) -> None:
        self._pids: list[int] = []
        # A child ends when its control is closed.
        self._controls: list[Connection] = []
        self._connections: list[Connection] = []
        self._idle: SimpleQueue[Connection] = SimpleQueue()

    def work(self, item: Any) -> Any:
        """The result for an item, from whichever process is free. Raises `ChildLost`."""
        connection = self._idle.get()
        try:
            connection.send(item)
            return connection.recv()
        except (EOFError, OSError):
            raise ChildLost("a process of this run ended unexpectedly") from None
        finally:
            self._idle.put(connection)

    def cut(self) -> None:
        """Tell every child to end at once."""
        while self._controls:
            self._controls.pop().close()

    def fork(self, threads: int, opened: Opened) -> None:
        """Start a child that works on `threads` items at once; no thread may be running yet."""
        control, child_control = Pipe()
        pairs = [Pipe() for _ in range(threads)]
        self._controls.append(control)
        self._connections += [own for own, _ in pairs]
        # The child inherits the mask, and so never acts on these signals.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            # A copy that stays open here would keep the other children alive.
            for end in (*self._controls, *self._connections):
                end.close()
            _serve(child_control, [theirs for _, theirs in pairs], opened)
        self._pids.append(pid)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for own, theirs in pairs:
            theirs.close()
            self._idle.put(own)
        child_control.close()

    def close(self) -> None:
        """End the children and wait for them."""
        self.cut()
        for connection in self._connections:
            connection.close()
        for pid in self._pids:
            os.waitpid(pid, 0)


@contextmanager
def forked(threads: Sequence[int], opened: Opened) -> Iterator[Children]:
    """A child for each number in `threads`, gone after the block."""
    children = Children()
    try:
        for count in threads:
            children.fork(count, opened)
        yield children
    finally:
        children.close()


def _serve(control: Connection, connections: Sequence[Connection], opened: Opened) -> NoReturn:
    """Run a child, which ends when its parent says so or has ended."""
    try:
        with opened(len(connections)) as worker:
            for connection in connections:
                threading.Thread(
                    target=_answer, args=(connection, worker.work), daemon=True
                ).start()
            control.poll(None)
            # The process ends inside the block, so that the work under way is not closed first.
            os._exit(0)
    finally:
        os._exit(1)


def _answer(connection: Connection, work: Work) -> None:
    # The connection ends when the parent needs no more results, or has ended.
    with suppress(EOFError, OSError):
        while True:
            connection.send(work(connection.recv()))
