"""What of the service is switched on for a run, and judged by itself afterwards."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.callers import Caller
from tests.chaos.target import Target
from tests.e2e.serving import ROOT, WAIT_S, environment

# Makes a caller of the server that is there at the moment.
MakeCaller = Callable[[], Caller]


class Part:
    """A part that does nothing; others inherit from it what they do not need."""

    def settings(self) -> dict[str, str]:
        """The variables that the server is started with because of it."""
        return {}

    def prepare(self, db: Path) -> None:
        """Switch on by commands what has to be there before the first server."""

    def set_up(self, target: Target) -> None:
        """Switch it on by commands, beside the first server and before its load."""

    def look(self, db: Path) -> Iterator[str]:
        """What is wrong at a moment under load, while no fault is on."""
        yield from ()

    def turn(self, target: Target) -> Iterator[str]:
        """What is wrong when nobody asks any more, before the clock turns or the server stops."""
        yield from ()

    def judge(self, connection: sqlite3.Connection) -> Iterator[str]:
        """What is wrong with the database after the last life."""
        yield from ()

    def line(self) -> str:
        """What it saw, in a line of the report."""
        raise NotImplementedError


def command(db: Path, *words: str, **settings: str) -> str:
    """Run `svc` with these words on a database; what it prints.

    `settings` are variables of its environment. Raises `AssertionError` where it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "svc.cli.main", *words, "--db", str(db)],
        cwd=ROOT,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
