"""What stays in memory of requests that are over is little, whatever was asked."""

from __future__ import annotations

import gc
import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc import limits
from svc.store import Database, activity
from svc.store.activity import NAME_CHARS
from svc.store.kept_names import KEPT_NAMES
from svc.store.question_versions import AskedTimes
from tests.store.copies import copied
from tests.web.conftest import Start, start

__all__ = ["start"]  # the fixture

NOW_MS = 1_795_000_000_000
NAMES = 500
NAMES_BYTES = 500_000


def held(act: Callable[[int], object], times: int) -> int:
    """The bytes that are held more after so many times of an act than after the first."""
    act(0)
    tracemalloc.start()
    for number in range(1, times):
        act(number)
    gc.collect()
    found, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found


def crowded(number: int) -> dict[str, Any]:
    """A condition of many small objects, of which each fills ten times its text."""
    return {"when": {"a": [f"w{number}", *({"": 0} for _ in range(2_800)), 1]}}


def holding(number: int) -> dict[str, Any]:
    """A condition that is longer, and that holds, so that the question is asked."""
    return {"when": {"a": [1, f"w{number}", *({} for _ in range(30_000))]}}


@pytest.mark.parametrize(("fields", "times"), [(crowded, 60), (holding, 20)])
def test_questions_that_were_asked_once_fill_little(
    start: Start, fields: Callable[[int], dict[str, Any]], times: int
) -> None:
    client = start().test_client()

    def ask(number: int) -> None:
        question = {"type": "noul", "instructions": "Is it so?", **fields(number)}
        body = {"state": {"a": 1}, "questions": {"q": question}, "mode": "logprobs"}
        assert client.post("/v1/decide", data=json.dumps(body)).status_code in (200, 502)

    assert held(ask, times) < 2 * limits.REMEMBERED_BYTES


def test_long_names_of_questions_fill_little(tmp_path: Path) -> None:
    with closing(Database.open(copied(tmp_path / "svc.db"))) as database:
        times = AskedTimes()
        new = "INSERT INTO questions (id, digest, definition) VALUES (1, '', '')"
        database.write(lambda connection: connection.execute(new).rowcount)

        def note(number: int) -> None:
            place = ("shop", f"{number}" + "\U0001f600" * 20_000)
            database.write(lambda connection: times.note(connection, {place: 1}, (), NOW_MS))

        assert held(note, NAMES) < NAMES_BYTES


def test_long_names_in_sums_fill_little(tmp_path: Path) -> None:
    assert NAMES < KEPT_NAMES
    with closing(Database.open(copied(tmp_path / "svc.db"))) as database:
        names = activity.names()

        def count(number: int) -> None:
            name = f"{number}".ljust(NAME_CHARS, "\U0001f600")

            def find(connection: sqlite3.Connection) -> list[str]:
                return names.of(connection, [((86_400, "question", 0, "shop"), name)])

            assert database.write(find) == [name]

        assert held(count, NAMES) < NAMES_BYTES
