"""What a server keeps in memory of tables that are hardly ever written."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc.errors import SettingsError
from svc.store.database import Database
from svc.store.errors import ApiKeyRefused
from svc.store.keys import ApiKeys
from svc.store.opened_file import ServedFile
from svc.store.remembered import KEPT_S, MOST_BYTES, Remembered, say_changed
from tests.clock import Clock
from tests.store.processes import child, lines


class Asked:
    """Answers a query with what it is given, and counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, query: str, *values: object) -> list[sqlite3.Row]:
        self.times += 1
        return [(query, *values, self.times)]  # type: ignore[list-item]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def remembered(path: Path, asked: Asked, clock: Clock) -> Remembered:
    return Remembered(path, asked, clock)


@pytest.fixture
def server(path: Path) -> Iterator[Database]:
    """The database as a server's process has it."""
    database = Database.open(path, served=ServedFile())
    yield database
    database.close()


def test_the_same_is_read_once(remembered: Remembered, asked: Asked) -> None:
    assert remembered.rows("a", 1) == remembered.rows("a", 1) == [("a", 1, 1)]
    assert remembered.rows("a", 2) == [("a", 2, 2)]
    assert asked.times == 2


def test_what_was_written_is_read_again(remembered: Remembered, asked: Asked, path: Path) -> None:
    remembered.rows("a")
    say_changed(path)
    assert remembered.rows("a") == [("a", 2)]
    assert remembered.rows("a") == [("a", 2)]


def test_what_another_program_wrote_is_read_a_second_later(
    remembered: Remembered, asked: Asked, clock: Clock, path: Path
) -> None:
    remembered.rows("a")
    path.with_name(f"{path.name}-changes").unlink()
    say_changed(path)
    clock.now += KEPT_S - 0.01
    assert remembered.rows("a") == [("a", 1)]
    clock.now += 0.01
    assert remembered.rows("a") == [("a", 2)]


def test_what_is_written_while_it_is_read_is_read_again(path: Path) -> None:
    def read(_: str) -> list[sqlite3.Row]:
        if not read_already:
            say_changed(path)
        read_already.append(True)
        return []

    read_already: list[bool] = []
    remembered = Remembered(path, read)
    remembered.rows("a")
    remembered.rows("a")
    assert len(read_already) == 2


@pytest.mark.parametrize("text", ["", "k" * 10_000])
def test_keys_that_do_not_exist_take_no_memory_without_end(
    remembered: Remembered, asked: Asked, text: str
) -> None:
    many = MOST_BYTES // (500 + len(text)) + 1
    for number in range(many):
        remembered.rows("a", number, text)
    assert remembered.rows("a", many - 1, text) == [("a", many - 1, text, many)]
    assert remembered.rows("a", 0, text) == [("a", 0, text, many + 1)]


def test_a_link_to_the_database_has_the_same_mark(
    remembered: Remembered, path: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    remembered.rows("a")
    say_changed(link)
    assert remembered.rows("a") == [("a", 2)]


def test_others_may_not_read_the_mark_and_no_link_is_followed(path: Path) -> None:
    mark = path.with_name(f"{path.name}-changes")
    Remembered(path, Asked())
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    mark.unlink()
    mark.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(SettingsError, match=r"svc\.db-changes"):
        Remembered(path, Asked())
    say_changed(path)
    assert not path.with_name("elsewhere").exists()


def test_a_database_without_a_server_has_no_mark(path: Path) -> None:
    database = Database.open(path)
    ApiKeys(database).create("ada", 60)
    database.close()
    assert os.listdir(path.parent) == [path.name]


def test_a_key_that_another_process_makes_or_revokes_counts_at_once(
    server: Database, path: Path
) -> None:
    keys = ApiKeys(server)
    assert keys.admit(None) is None
    with child("make_keys", path, "ada", "1") as process:
        (text,) = lines(process)
    key = keys.admit(text)
    assert key is not None and key.name == "ada0"
    with child("revoke_keys", path) as process:
        lines(process)
    with pytest.raises(ApiKeyRefused, match="revoked"):
        keys.admit(text)


def test_a_key_that_another_program_revokes_counts_for_a_second_at_most(
    server: Database, path: Path
) -> None:
    keys = ApiKeys(server)
    created = keys.create("ada", 60)
    assert created is not None and keys.admit(created.text) is not None
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE api_keys SET revoked_at = 1")
    with pytest.raises(ApiKeyRefused, match="revoked"):
        for _ in range(10_000_000):
            keys.admit(created.text)
