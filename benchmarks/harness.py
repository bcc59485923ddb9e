"""What every benchmark shares: its row, its options, and processes that end with it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
START_S = 20.0  # seconds for a process to say where it listens, and again to answer there
STOP_S = 40.0  # seconds for a process to end; the service takes up to 30 to shut down
DEBIAN_PACKAGES = {"nginx": "nginx-light", "wrk": "wrk"}
POLL_S = 0.005  # seconds between two looks
MEMORY_LOOK_S = 0.05  # seconds between two looks at memory
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LISTENING = re.compile(r"listening (?:on|at):? (http://\S+)", re.IGNORECASE)
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class BenchmarkError(Exception):
    """A measurement that would mean nothing: a process that failed, or answers that are errors."""


class NotRun(Exception):
    """Something that a benchmark needs is absent; the message says what would help."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long to measure."""

    seconds: float = 5.0  # of each run under load
    rounds: int = 3  # of twin and service, taking turns
    quick: bool = False  # fewer decisions where a target names a large number


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found, in words for the table."""

    measured: str
    twin: str = "-"
    ratio: str = "-"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One row of the table, and how it is measured."""

    name: str
    what: str
    target: str
    measure: Callable[[Options], Result]


@dataclass(frozen=True, slots=True)
class Process:
    """A server that is up, in a process of its own."""

    pid: int
    url: str
    log: Path


def python_environment() -> dict[str, str]:
    """An environment without the caller's proxies, provider keys and settings."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def require(*programs: str) -> None:
    """Raise `NotRun` naming the Debian packages of those `programs` that are absent."""
    missing = [DEBIAN_PACKAGES[name] for name in programs if not find(name)]
    if missing:
        raise NotRun(f"needs `apt-get install {' '.join(missing)}`")


def find(program: str) -> str | None:
    """Where a program is; Debian keeps nginx where only root looks."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin")


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    url: str = "",
    start_s: float = START_S,
) -> Iterator[Process]:
    """A server process, from its first answer to the end of the block.

    It listens on `url`, or says itself where; either may take `start_s` seconds. Raises
    `BenchmarkError` with its last words when it does not get that far.
    """
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment or python_environment()),
            start_new_session=True,  # Ctrl-C reaches the benchmark alone, which then ends it
        )
        try:
            path = Path(log.name)
            url = url or _announced(child, path, start_s)
            _wait_for_answer(child, url, path, start_s)
            yield Process(child.pid, url, path)
        finally:
            _end(child)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """A folder for a benchmark's files, gone with its block."""
    return tempfile.TemporaryDirectory(prefix="svc-bench-")


def memory_mb(pid: int) -> float:
    """Resident MiB of a process and its children, pages that they share counted once.

    That is the sum of the proportional set sizes in /proc/<pid>/smaps_rollup.
    """
    return sum(_proportional_kib(member) for member in family(pid)) / 1024


def most_memory_mb(pid: int) -> float:
    """The most resident MiB that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, its processor time in seconds, and the most resident MiB it had."""

    code: int
    processor_s: float
    memory_mb: float


def ended(child: subprocess.Popen[bytes]) -> Ended:
    """Wait for the end of a process.

    Its memory is looked at while it runs: what wait4(2) tells of it begins with what its parent had
    when it was forked.
    """
    memory = 0.0
    while True:
        # A process that has just ended has no memory any more.
        with suppress(OSError, StopIteration):
            memory = most_memory_mb(child.pid)
        found, status, usage = os.wait4(child.pid, os.WNOHANG)
        if found:
            child.returncode = os.waitstatus_to_exitcode(status)
            return Ended(child.returncode, usage.ru_utime + usage.ru_stime, memory)
        time.sleep(MEMORY_LOOK_S)


def processor_s(pid: int) -> float:
    """Processor time that a server and its workers have used, in seconds."""
    return sum(seconds_of(member) for member in family(pid))


def seconds_of(pid: int) -> float:
    """Processor time that one process has used, in seconds of user and system time."""
    after_the_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_the_name[11]) + int(after_the_name[12])) / _TICKS_PER_S


def _proportional_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:")))


def family(pid: int) -> list[int]:
    """A process and all that descend from it, by their ids."""
    found = [pid]
    # A process or thread may end while it is looked at.
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in _children(task):
                found += family(child)
    return found


def _children(task: Path) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in (task / "children").read_text().split()]
    return []


def _announced(child: subprocess.Popen[bytes], log: Path, start_s: float) -> str:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline and child.poll() is None:
        if found := _LISTENING.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(POLL_S)
    raise _failed(child, log, "did not say where it listens")


def _wait_for_answer(child: subprocess.Popen[bytes], url: str, log: Path, start_s: float) -> None:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline and child.poll() is None:
        if _answers(url):
            return
        time.sleep(POLL_S)
    raise _failed(child, log, f"did not answer at {url}")


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health", timeout=START_S).close()
    except urllib.error.HTTPError:
        return True  # any status is an answer
    except OSError:
        return False
    return True


def _failed(child: subprocess.Popen[bytes], log: Path, how: str) -> BenchmarkError:
    words = log.read_text(errors="replace").strip()[-2000:]
    return BenchmarkError(f"{Path(str(child.args[0])).name} {how}:\n{words}")  # type: ignore[index]


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its own session: nobody else is in it
            child.wait()


def run_program(main: Callable[[], int]) -> NoReturn:
    """Run a program to its end; SIGTERM interrupts it, as Ctrl-C does, so that its servers end."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
