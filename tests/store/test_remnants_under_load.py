"""Cleaning damages nothing, whoever reads, writes, cleans or is killed meanwhile."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.rummage import DELETED, SCHEMA, connected, versions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# At least so long, and until it was cleaned in so many turns, but no longer than the second.
SECONDS, MOST_SECONDS, TURNS = 5.0, 60.0, 3
ROLES = ("write", "write", "write", "read", "clean", "clean")
LIFE_S = 1.0


def started(path: Path, slot: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.rummage", ROLES[slot], str(path), str(slot)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> None:
    """Kill it, unless it has failed before, which fails the test."""
    process.kill()
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said


def left(path: Path, slot: int) -> dict[int, set[int]]:
    """The versions that each row of a writer may have: the last that it was told of, or a later one
    of which it was killed before it was told.
    """
    found: dict[int, set[int]] = {}
    notes = Path(f"{path}.{slot}")
    for line in notes.read_text().splitlines() if notes.exists() else []:
        when, *changed = line.split(",")
        # Of a row that is written twice in a transaction the last counts.
        last = {int(key): int(version) for key, version in map(str.split, changed)}
        for key, version in last.items():
            before = found.get(key, {DELETED}) if when == "before" else set()
            found[key] = before | {version}
    return found


def turns(path: Path) -> int:
    """How often some pages were cleaned."""
    with closing(connected(str(path))) as connection:
        found = connection.execute("SELECT value FROM meta WHERE name = 'cleaned'").fetchone()
    return found[0] if found else 0


@pytest.mark.parametrize("page", [512, 4096, 65_536])
def test_nothing_is_lost_while_processes_are_killed(tmp_path: Path, page: int) -> None:
    path, draw = tmp_path / "svc.db", random.Random(page)
    with closing(connected(str(path))) as connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
    running = [started(path, slot) for slot in range(len(ROLES))]
    began = time.monotonic()
    try:
        while (now := time.monotonic() - began) < SECONDS or turns(path) < TURNS:
            assert now < MOST_SECONDS, "cleaning has no turn"
            time.sleep(LIFE_S)
            slot = draw.randrange(len(ROLES))
            ended(running[slot])
            running[slot] = started(path, slot)
    finally:
        for process in running:
            process.kill()
    for process in running:
        ended(process)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = versions(connection)
    known = {key: may for slot in range(len(ROLES)) for key, may in left(path, slot).items()}
    assert stored and stored.keys() <= known.keys()
    assert all(stored.get(key, DELETED) in may for key, may in known.items())
