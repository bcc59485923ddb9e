"""Questions that nobody asked before, in the thread that writes for all."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from svc.store import Database
from svc.store.question_versions import AskedTimes
from tests.store.copies import copied

# Two thousand of them once took five seconds; they take a hundredth of one.
QUESTIONS, PROCESSOR_S = 2_000, 1.0
NOW_MS = 1_795_000_000_000


def test_to_note_when_new_questions_were_asked_costs_little_time(tmp_path: Path) -> None:
    asked_now = {("shop", f"q{number}"): 1 for number in range(QUESTIONS)}

    def write(connection: sqlite3.Connection) -> float:
        connection.execute("INSERT INTO questions (id, digest, definition) VALUES (1, '', '')")
        before = time.thread_time()
        AskedTimes().note(connection, asked_now, (), NOW_MS)
        return time.thread_time() - before

    with closing(Database.open(copied(tmp_path / "svc.db"))) as database:
        assert database.write(write) < PROCESSOR_S
