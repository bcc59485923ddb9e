"""What is done to a server under load; each fault is on for the length of a block."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from svc.store.opened_file import GONE
from tests.chaos.behaviours import Weather
from tests.chaos.clock import JUMPS_S
from tests.chaos.gate import Gate
from tests.chaos.journal import BROKEN, STORAGE
from tests.chaos.target import Target, open_files

DISK_MB = 256  # of the file system that fills up
JUMP_EVERY_S = 0.3  # seconds
HOOKS_START_S = 10.0  # seconds until a process is there that sends to hooks, on a busy machine
BALLAST = "ballast"
MiB = 1024 * 1024
NOT_READY = 503

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, how long it is on, and what requests may meet with because of it."""

    name: str
    on: Callable[[Target], AbstractContextManager[None]]
    seconds: tuple[float, ...]  # one of these
    excuses: frozenset[int] = frozenset()

    @property
    def short_s(self) -> float:
        """Seconds in a short run."""
        return min(self.seconds) / 2


@contextlib.contextmanager
def locked(target: Target) -> Iterator[None]:
    """Another process, this one, holds the lock for writing."""
    connection = sqlite3.connect(target.db, timeout=10, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@contextlib.contextmanager
def full_disk(target: Target) -> Iterator[None]:
    """Nothing is left of the file system that the database lies on."""
    ballast = target.db.with_name(BALLAST)
    try:
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(MiB))
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def files_at_their_limit(target: Target) -> Iterator[None]:
    """No file of the server may grow, as under a quota."""
    log = target.db.with_name(target.db.name + "-wal")
    with _limited(target, resource.RLIMIT_FSIZE, lambda pid: log.stat().st_size):
        yield


@contextlib.contextmanager
def no_descriptors(target: Target) -> Iterator[None]:
    """The workers have as many files open as they may."""
    with _limited(target, resource.RLIMIT_NOFILE, open_files):
        yield


@contextlib.contextmanager
def jumping_clock(target: Target, gate: Gate) -> Iterator[None]:
    """The wall clock jumps, back and forth; no budget pays then, for each month has one."""
    with gate.shut(), _jumping(target):
        yield


@contextlib.contextmanager
def _jumping(target: Target) -> Iterator[None]:
    stop = threading.Event()

    def jump() -> None:
        while not stop.wait(JUMP_EVERY_S):
            target.clock.shift(random.choice(JUMPS_S))

    thread = threading.Thread(target=jump, name="clock")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        target.clock.shift(0.0)


@contextlib.contextmanager
def stopped_worker(target: Target) -> Iterator[None]:
    """One of the workers stands still, unless it is killed for a lock that it holds."""
    pid = random.choice(sorted(target.workers))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def deleted_file(target: Target, tell: Tell) -> Iterator[None]:
    """The database and what lies beside it have no name; then they are put back."""
    names = [target.db.with_name(target.db.name + end) for end in ("", "-wal", "-shm")]
    kept = {name: name.with_name(f"kept-{name.name}") for name in names if name.exists()}
    for name, aside in kept.items():
        os.link(name, aside)
        name.unlink()
    try:
        yield
        if (status := target.get("/ready").status_code) != NOT_READY:
            tell(f"/ready is {status} while the database file is deleted")
        if GONE not in target.log:
            tell("no line in the log says that the database file was deleted")
        if found := [name.name for name in names if name.exists()]:
            tell(f"{found} made in the place of the deleted database file")
    finally:
        # The database comes last: with it all is there.
        for name, aside in reversed(kept.items()):
            aside.rename(name)


@contextlib.contextmanager
def killed_hooks_process(target: Target, tell: Tell) -> Iterator[None]:
    """The process that sends to hooks is killed, and the server has to start another one."""
    give_up_at = time.monotonic() + HOOKS_START_S
    while (pid := target.hooks_process) is None and time.monotonic() < give_up_at:
        time.sleep(0.05)
    if pid is None:
        tell("no process sends to hooks")
    else:
        os.kill(pid, signal.SIGKILL)
    yield


def faults(weather: Weather, gate: Gate, real_disk: bool, tell: Tell) -> list[Fault]:
    """All of them but kills; `real_disk` when the database lies on a file system of its own.

    `gate` holds back what a budget pays; `tell` notes what must not be.
    """
    stored = frozenset({STORAGE})
    found = [
        Fault("database locked", locked, (2.0, 7.0), stored),
        Fault("files may not grow", files_at_their_limit, (2.0,), stored),
        Fault("no descriptors", no_descriptors, (2.0,), stored | {BROKEN}),
        Fault("a worker stopped", stopped_worker, (2.0,), frozenset({BROKEN})),
        Fault("svc-hooks killed", partial(killed_hooks_process, tell=tell), (1.0,)),
        Fault("database deleted", partial(deleted_file, tell=tell), (3.0,), stored),
        Fault("clock jumps", partial(jumping_clock, gate=gate), (2.0,)),
        Fault("providers reset", lambda _: weather.storm("reset", "nothing"), (1.5,)),
        Fault("providers silent", lambda _: weather.storm("silent", "drips-head"), (1.5,)),
        Fault("providers flood", lambda _: weather.storm("ten-mb", "endless"), (1.5,)),
        Fault("providers refuse", lambda _: weather.storm("broken", "garbage", "busy"), (1.5,)),
    ]
    if real_disk:
        found.append(Fault("disk full", full_disk, (2.0,), stored))
    return found


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """A small file system of its own in `folder`; False where this user may not mount one."""
    options = ["-t", "tmpfs", "-o", f"size={DISK_MB}m", "chaos", str(folder)]
    try:
        mounted = subprocess.run(["mount", *options], capture_output=True, check=False)
        real = mounted.returncode == 0
    except FileNotFoundError:
        real = False
    try:
        yield real
    finally:
        if real:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def _limited(target: Target, limit: int, used: Callable[[int], int]) -> Iterator[None]:
    """Limit each worker to what it uses; the limits from before come back after the block."""
    before = {pid: resource.prlimit(pid, limit) for pid in target.workers}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, limit, (used(pid), hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, limit, limits)


def kill_a_worker(target: Target) -> None:
    """SIGKILL to one of the workers; the others and their parent go on."""
    os.kill(random.choice(sorted(target.workers)), 9)
