"""The server that is put to the test: `svc serve` on a clock that can be shifted."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.clock import Clock
from tests.e2e.serving import Server


@dataclass(frozen=True, slots=True)
class Footing:
    """What the server's processes hold."""

    threads: int
    files: int
    memory_mb: float  # pages that processes share counted once


class Target(Server):
    """One life of the server; the next one works on the same database."""

    def __init__(self, db: Path, clock: Clock, *arguments: str, **settings: str) -> None:
        super().__init__(db, *arguments, **settings)
        self.db, self.clock = db, clock
        self.clock.shift(0.0)
        module = [sys.executable, "-m", "tests.chaos.shifted", str(self.clock.path)]
        self._command = [*module, *self._command[self._command.index("serve") :]]

    def footing(self) -> Footing:
        """What it holds at this moment."""
        pids = [self._process.pid, *self.workers]
        return Footing(
            sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids),
            sum(open_files(pid) for pid in pids),
            sum(_memory_mb(pid) for pid in pids),
        )


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
