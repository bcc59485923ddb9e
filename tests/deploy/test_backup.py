from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.serving import ROOT, Server, stored
from tests.web.models import decision

SCRIPT = str(ROOT / "deploy/backup.py")


def back_up(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_backup_under_load_holds_every_decision_answered_before_it_began(tmp_path: Path) -> None:
    db, copy = tmp_path / "svc.db", tmp_path / "copy.db"
    answered: list[str] = []
    enough, ended = threading.Event(), threading.Event()

    def ask(caller: int) -> None:
        n = 0
        while not ended.is_set():
            n += 1
            answered.append(server.post(decision(f"{caller} {n}")).json()["id"])
            if len(answered) >= 100:
                enough.set()

    with Server(db, "--demo") as server, ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask, caller) for caller in range(4)]
        try:
            assert enough.wait(60)
            for _ in range(3):
                before = set(answered)
                assert back_up(db, copy).returncode == 0
                held = stored(copy)
                assert before <= held.keys()
                with contextlib.closing(sqlite3.connect(copy)) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        finally:
            ended.set()
        for caller in asking:
            caller.result()
        assert server.stop() == 0
    assert set(answered) == stored(db).keys()
    with Server(copy, "--demo") as restored:  # the copy is a database to serve from
        assert restored.post(decision()).status_code == 200
    assert held.keys() < stored(copy).keys()


def test_a_copy_is_for_its_owner_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    db, copy = tmp_path / "svc.db", tmp_path / "copies" / "copy.db"
    copy.parent.mkdir()
    sqlite3.connect(db).close()
    assert back_up(db, copy).returncode == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]


def test_a_backup_that_fails_says_so_and_leaves_the_last_one_as_it_was(tmp_path: Path) -> None:
    no_database, copy = tmp_path / "svc.db", tmp_path / "copy.db"
    copy.write_text("the last one")
    for text in (None, "no database at all" * 100):
        if text is not None:
            no_database.write_text(text)
        ended = back_up(no_database, copy)
        assert ended.returncode == 1
        assert ended.stderr.startswith("Error: no backup of ") and ended.stderr.count("\n") == 1
        assert copy.read_text() == "the last one"
    assert not (tmp_path / "copy.db.part").exists()


@pytest.mark.parametrize("name", ["svc.db", "link", "other name", "svc.db-wal", "svc.db-shm"])
def test_a_copy_in_place_of_the_database_itself_is_refused(tmp_path: Path, name: str) -> None:
    db = tmp_path / "svc.db"
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        (tmp_path / "link").symlink_to(db)
        (tmp_path / "other name").hardlink_to(db)
        before = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
        ended = back_up(db, tmp_path / name)
        assert ended.returncode == 1 and "is of the database itself" in ended.stderr
        assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == before


def test_a_database_whose_name_the_copy_is_made_under_is_refused(tmp_path: Path) -> None:
    db = tmp_path / "copy.db.part"
    sqlite3.connect(db).close()
    assert back_up(db, tmp_path / "copy.db").returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == [db.name]


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_what_was_left_beside_a_copy_is_not_read_into_the_next_one(
    tmp_path: Path, end: str
) -> None:
    db, copy, left = tmp_path / "svc.db", tmp_path / "copy.db", tmp_path / f"copy.db{end}"
    sqlite3.connect(db).close()
    left.touch()
    ended = back_up(db, copy)
    assert ended.returncode == 1 and str(left) in ended.stderr and not copy.exists()
    left.unlink()
    assert back_up(db, copy).returncode == 0


def test_a_copy_of_what_is_damaged_takes_no_ones_place(tmp_path: Path) -> None:
    db, copy = tmp_path / "svc.db", tmp_path / "copy.db"
    copy.write_text("the last one")
    with contextlib.closing(sqlite3.connect(db)) as connection:
        connection.executescript(
            "CREATE TABLE t (x); INSERT INTO t VALUES (NULL); PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = 'CREATE TABLE t (x NOT NULL)';"
        )
    ended = back_up(db, copy)
    assert ended.returncode == 1 and "damaged" in ended.stderr
    assert copy.read_text() == "the last one"


def test_of_two_backups_to_one_place_the_second_is_refused(tmp_path: Path) -> None:
    db, copy, part = tmp_path / "svc.db", tmp_path / "copy.db", tmp_path / "copy.db.part"
    sqlite3.connect(db).close()
    copy.write_text("the last one")
    with part.open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        first.write("what the first one has written")
        first.flush()
        ended = back_up(db, copy)
        assert ended.returncode == 1 and "another backup writes" in ended.stderr
        assert part.read_text() == "what the first one has written"
        assert copy.read_text() == "the last one"
    # As a backup that was killed leaves it.
    assert back_up(db, copy).returncode == 0
    assert not part.exists()
    sqlite3.connect(copy).execute("PRAGMA schema_version").fetchone()


@pytest.mark.parametrize("laid", ["a link", "of another user"])
def test_a_file_that_somebody_laid_in_the_place_gets_nothing(tmp_path: Path, laid: str) -> None:
    db, copy, part = tmp_path / "svc.db", tmp_path / "copy.db", tmp_path / "copy.db.part"
    sqlite3.connect(db).close()
    if laid == "a link":
        (tmp_path / "precious").write_text("as it was")
        part.hardlink_to(tmp_path / "precious")
    elif os.geteuid() == 0:
        part.write_text("as it was")
        os.chown(part, 65_534, 65_534)
    else:
        pytest.skip("only root can give a file away")
    ended = back_up(db, copy)
    assert ended.returncode == 1 and "is no file of this user alone" in ended.stderr
    assert part.read_text() == "as it was" and not copy.exists()


def test_a_copy_is_for_its_owner_alone(tmp_path: Path) -> None:
    db, copy, part = tmp_path / "svc.db", tmp_path / "copy.db", tmp_path / "copy.db.part"
    sqlite3.connect(db).close()
    # As a backup that was killed may leave it, by other rights.
    part.touch(0o666)
    part.chmod(0o666)
    assert back_up(db, copy).returncode == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_wrong_use_is_told_the_right_one() -> None:
    ended = back_up("one")
    assert (ended.returncode, ended.stderr) == (2, "usage: backup.py <database> <copy>\n")
