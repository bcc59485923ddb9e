"""What the processes of one server share: locks, and how many connections each has."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import math
import mmap
import os
import select
import signal
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from svc import files
from svc.deadline import Deadline

# Nobody sees the load of any worker beyond this number.
MAX_WORKERS = 1_024

# The pause before a lock is tried again that was refused as a deadlock.
DEADLOCK_RETRY_S = 0.001

# The pause between two looks at who holds the locks that others wait for, and the looks in a row
# that have to find the same process stopped. A group of processes that is continued together is not
# continued at one instant.
LOOK_EVERY_S = 0.2
LOOKS = 3

# The pause between two looks at whether another process has released a lock by name.
NAMED_RETRY_S = 0.02

# The pause between two looks of a thread that waits for another one's named lock at whether it is
# still wanted.
NAMED_LOOK_S = 0.5

# A worker that has not said for so long how many connections it has takes no new ones.
SILENT_S = 2.5

# Who gives way leaves a lock alone for so many times as long as it held it, but for so many seconds
# at most, and only where another process had the lock in the last so many seconds.
REST, MOST_REST_S, SHARED_S = 3.0, 0.5, 2.0

_PID = struct.Struct("@q")

# Linux's `struct flock`: type, whence, start, length, process id.
_FLOCK = struct.Struct("@hhqqi")

log = logging.getLogger(__name__)


class ProcessLock:
    """A lock that processes forked after it was made share; in each, for one thread at a time.

    The operating system releases it when the process that holds it ends, in whatever way. A
    process that is stopped while it holds the lock is killed when another one waits for it:
    nothing else could go on before it does.
    """

    def __init__(self) -> None:
        self._file = files.nameless()
        self.close = weakref.finalize(self, os.close, self._file)

    def __enter__(self) -> None:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            with _watch.waiting(self):
                self._wait()

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _wait(self) -> None:
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX)
            except OSError as error:
                # The kernel knows only processes, not threads. Where one thread of each of two
                # processes holds a lock that another thread of the other one waits for, it wrongly
                # sees a deadlock.
                if error.errno != errno.EDEADLK:
                    raise
                time.sleep(DEADLOCK_RETRY_S)
            else:
                return

    def holder(self) -> int:
        """The id of the process that holds it; 0 where none does or the system does not tell."""
        return _holder(self._file, 0, 0)


class _NamedLock(NamedTuple):
    """One of `NamedLocks`: a byte of their file."""

    file: int
    place: int

    def holder(self) -> int:
        """As of `ProcessLock`."""
        return _holder(self.file, self.place, 1)


def _holder(file: int, start: int, length: int) -> int:
    if sys.platform != "linux":
        return 0
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    try:
        told = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    except OSError:
        # It was closed.
        return 0
    kind, *_, pid = _FLOCK.unpack(told)
    return 0 if kind == fcntl.F_UNLCK else int(pid)


_Lock = ProcessLock | _NamedLock


class _Watch:
    """A thread that looks who holds the locks that this process waits for.

    It starts with the first lock that has to be waited for, so that nothing else pays for it.
    """

    def __init__(self) -> None:
        self._forked()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Threads are not forked."""
        self._lock = threading.Lock()
        self._waiting: dict[_Lock, int] = {}
        self._runs = False

    @contextlib.contextmanager
    def waiting(self, lock: _Lock) -> Iterator[None]:
        """Inside the block a thread waits for `lock`."""
        with self._lock:
            self._waiting[lock] = self._waiting.get(lock, 0) + 1
            if not self._runs:
                # Where the system allows no further thread, who waits next tries anew.
                with contextlib.suppress(RuntimeError):
                    threading.Thread(target=self._run, name="lock-watch", daemon=True).start()
                    self._runs = True
        try:
            yield
        finally:
            with self._lock:
                self._waiting[lock] -= 1
                if not self._waiting[lock]:
                    del self._waiting[lock]

    def _run(self) -> None:
        found: dict[_Lock, tuple[int, int]] = {}
        while True:
            time.sleep(LOOK_EVERY_S)
            with self._lock:
                waiting = list(self._waiting)
            found = {lock: _look(lock, *found.get(lock, (0, 0))) for lock in waiting}


def _look(lock: _Lock, before: int, looks: int) -> tuple[int, int]:
    """Who holds `lock` and is stopped, 0 for nobody, and how many looks in a row have seen it.

    `before` and `looks` are what the last look returned.
    """
    pid = lock.holder()
    if not pid or pid == os.getpid() or not is_stopped(pid):
        return 0, 0
    looks = looks + 1 if pid == before else 1
    if looks >= LOOKS and lock.holder() == pid:
        log.error("process %d was stopped while it held what others wait for: it is killed", pid)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return pid, looks


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped, by a signal or a debugger, or is writing its core."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "\nState:\tT" in status or "\nState:\tt" in status or "\nCoreDumping:\t1" in status


_watch = _Watch()


class FairLock:
    """A lock of processes that none gets twice in a row while another waits for it.

    The process that is next in line holds the gate while it waits for the lock. A process that has
    just released the lock must pass the gate again, so it cannot overtake the one that waits.
    """

    def __init__(self) -> None:
        self._gate, self._lock = ProcessLock(), ProcessLock()
        # The process that has it, or had it last.
        self._latest = mmap.mmap(-1, _PID.size)
        self.shared = False

    def __enter__(self) -> None:
        with self._gate:
            self._lock.__enter__()
        (before,) = _PID.unpack_from(self._latest)
        # Whether another process had it since this one did.
        self.shared = before not in (0, os.getpid())
        _PID.pack_into(self._latest, 0, os.getpid())

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()

    def close(self) -> None:
        """Release it in this process."""
        self._latest.close()
        self._gate.close()
        self._lock.close()


class Resting:
    """A fair lock for one thread that leaves it to other processes for longer than it held it.

    A process of low priority may hold it for long, since others take the processor from it.
    """

    def __init__(
        self,
        lock: FairLock,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._lock, self._clock, self._sleep = lock, clock, sleep
        self._taken_at = self._rested_at = 0.0
        self._shared_at = -math.inf

    def __enter__(self) -> None:
        left_s = self._rested_at - self._clock()
        if left_s > 0:
            self._sleep(left_s)
        self._lock.__enter__()
        self._taken_at = self._clock()
        if self._lock.shared:
            self._shared_at = self._taken_at

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()
        now = self._clock()
        if now - self._shared_at < SHARED_S:
            self._rested_at = now + min(REST * (now - self._taken_at), MOST_REST_S)


class NamedLocks:
    """Locks by name, which processes forked after this was made share; for one thread at a time.

    The operating system releases those of a process when it ends, in whatever way. A process that
    is stopped while it holds one is killed when another one waits for it, as of `ProcessLock`.
    """

    def __init__(self) -> None:
        self._file = files.nameless()
        self.close = weakref.finalize(self, os.close, self._file)
        self._changed = threading.Condition()
        self._held: set[int] = set()

    @contextlib.contextmanager
    def hold(self, name: bytes, deadline: Deadline) -> Iterator[None]:
        """Hold the lock of a name of 8 or more random bytes. Raises `Timeout` at the deadline."""
        # A lock is one byte of the file, at a place that the system takes for one in a file.
        place = int.from_bytes(name[:8]) >> 2
        with self._in_this_process(place, deadline):
            if not self._take(place):
                with _watch.waiting(_NamedLock(self._file, place)):
                    self._wait(place, deadline)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    @contextlib.contextmanager
    def _in_this_process(self, place: int, deadline: Deadline) -> Iterator[None]:
        """The system knows only processes, not threads."""
        with self._changed:
            while place in self._held:
                deadline.check()
                # A deadline that is cancelled wakes nobody.
                self._changed.wait(min(deadline.left(), NAMED_LOOK_S))
            self._held.add(place)
        try:
            yield
        finally:
            with self._changed:
                self._held.discard(place)
                self._changed.notify_all()

    def _wait(self, place: int, deadline: Deadline) -> None:
        while not self._take(place):
            deadline.check()
            time.sleep(NAMED_RETRY_S)

    def _take(self, place: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            return False
        return True


class Bell:
    """Wakes one process; those forked after this was made may ring."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)
        self.close = weakref.finalize(self, _close, self._reading, self._writing)

    def ring(self) -> None:
        """Wake who waits, now or when it waits next."""
        # In a full pipe there is enough to wake it.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b"!")

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it was rung since the last time."""
        select.select([self._reading], [], [], seconds)
        rung = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reading, 4_096):
                rung = True
        return rung


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


class ProcessPlaces:
    """The places of processes forked after this was made: no two that run have the same one.

    What a process that ended has left in its place goes on with the next one that takes it.
    """

    def __init__(self, places: int) -> None:
        self._lock = ProcessLock()
        self._pids = _numbers(places)
        self.close = self._lock.close

    def take(self) -> int | None:
        """A place for this process; None where processes that run have them all."""
        with self._lock:
            for place, pid in enumerate(self._pids):
                if not is_running(pid):
                    self._pids[place] = os.getpid()
                    return place
        return None

    @property
    def taken(self) -> int:
        """How many places were ever taken, which are the first ones."""
        return next((place for place, pid in enumerate(self._pids) if not pid), len(self._pids))

    def running(self) -> list[int]:
        """The places of processes that run."""
        return [place for place in range(self.taken) if is_running(self._pids[place])]


class WorkerLoads:
    """How many connections each worker has, for all of them to see.

    A worker that has ended, in whatever way, is not counted, nor is one that has fallen silent, nor
    one beyond `MAX_WORKERS`.
    """

    def __init__(self) -> None:
        self._places = ProcessPlaces(MAX_WORKERS)
        # Of each place the load, and when the process said so, in milliseconds on the monotonic
        # clock.
        self._loads, self._said_at = (_numbers(MAX_WORKERS) for _ in range(2))
        self._own: int | None = None
        self._joined = False
        self.close = self._places.close

    def publish(self, load: int) -> None:
        """Set the load of this process; the first call waits for a lock."""
        if not self._joined:
            self._own, self._joined = self._places.take(), True
        if self._own is not None:
            self._loads[self._own] = load
            self._said_at[self._own] = int(time.monotonic() * 1000)

    def least_of_others(self) -> int | None:
        """The least load of another process; None where there is no other."""
        since = (time.monotonic() - SILENT_S) * 1000
        others = (place for place in self._places.running() if place != self._own)
        loads = (self._loads[place] for place in others if self._said_at[place] >= since)
        return min(loads, default=None)


def _numbers(count: int) -> memoryview[int]:
    """So many 64-bit numbers, which processes forked after this share."""
    return memoryview(mmap.mmap(-1, count * 8)).cast("q")


def is_running(pid: int) -> bool:
    """Whether there is such a process; 0 stands for no process."""
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Another user's.
        return True
    return True
