"""A file that is deleted, moved or replaced while it is open."""

from __future__ import annotations

import os
import re
import select
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc.errors import SettingsError
from svc.store import StorageError
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.keys import ApiKeys
from svc.store.migrations import prepare, shipped
from svc.store.opened_file import GONE, LOG_GONE, REPLACED, OpenedFile, ServedFile
from tests.clock import Clock
from tests.store.records import record

# For one small write, on a busy machine.
PATIENCE_S = 10.0


def away(path: Path) -> None:
    for found in path.parent.glob(f"{path.name}*"):
        found.unlink()


def replace(path: Path) -> None:
    """Put another database there, as a restored backup is."""
    other = path.with_name("other.db")
    Database.open(other).close()
    away(path)
    os.replace(other, path)


def link(path: Path) -> None:
    """Put a link in the place of the file, beside which SQLite does not look for the log."""
    moved = path.with_name("moved.db")
    path.rename(moved)
    path.symlink_to(moved.name)


HARM = [(away, GONE), (replace, REPLACED), (link, REPLACED)]


@pytest.mark.parametrize(("harm", "words"), HARM)
def test_what_nobody_would_find_is_not_stored(
    database: Database, path: Path, harm: Callable[[Path], None], words: str
) -> None:
    decisions = Decisions(database)
    decisions.add(record())
    harm(path)
    with pytest.raises(StorageError, match=words):
        decisions.add(record())
    with pytest.raises(StorageError, match=words):
        decisions.page("default", 10)
    with pytest.raises(StorageError, match=words):
        database.check_writable(PATIENCE_S)


def test_what_was_written_before_a_link_took_the_place_is_not_left_behind(path: Path) -> None:
    """A server that was killed then began without its last 132 decisions."""
    database = Database.open(path)
    decision = Decisions(database).add(record())
    Path(f"{path}-wal").rename(kept := path.with_name("kept-wal"))
    database.close()
    kept.rename(f"{path}-wal")
    link(path)
    with pytest.raises(SettingsError, match=r"svc.db' is a link, and .*-wal' holds what was last"):
        Database.open(path)
    path.unlink()
    path.with_name("moved.db").rename(path)
    again = Database.open(path)
    assert [entry.id for entry in Decisions(again).page("default", 10).entries] == [decision]
    again.close()


@pytest.mark.parametrize("moved_to", ["moved.db", "linked.db"])
def test_a_link_behind_another_one_counts_too(path: Path, moved_to: str) -> None:
    Database.open(path).close()
    linked, moved = path.with_name("linked.db"), path.with_name(moved_to)
    linked.symlink_to(path.name)
    database = Database.open(linked)
    decision = Decisions(database).add(record())
    path.rename(moved)
    if moved_to == "moved.db":
        path.symlink_to(moved_to)
    with pytest.raises(StorageError, match=REPLACED):
        Decisions(database).add(record())
    left = Path(f"{path}-wal").read_bytes()
    database.close()
    Path(f"{path}-wal").write_bytes(left)
    if moved_to == "moved.db":
        with pytest.raises(SettingsError, match=r"svc.db' is a link, and .*svc.db-wal' holds"):
            Database.open(linked)
        path.unlink()
        moved.rename(path)
        again = Database.open(linked)
        assert [entry.id for entry in Decisions(again).page("default", 10).entries] == [decision]
        again.close()


def test_a_link_that_leads_to_the_file_as_before_is_none_in_its_place(path: Path) -> None:
    Database.open(path).close()
    linked = path.with_name("linked.db")
    linked.symlink_to(path.name)
    database = Database.open(linked)
    linked.unlink()
    linked.symlink_to(path)
    Decisions(database).add(record())
    database.close()


def test_nothing_goes_into_the_file_that_took_the_place(database: Database, path: Path) -> None:
    replace(path)
    with pytest.raises(StorageError):
        Decisions(database).add(record())
    database.close()
    other = Database.open(path)
    assert Decisions(other).page("default", 10).entries == []
    other.close()


def test_what_a_handler_writes_while_the_file_goes_is_not_answered_as_stored(
    database: Database, path: Path
) -> None:
    with pytest.raises(StorageError, match=GONE):
        database.write(lambda connection: away(path))


def test_a_key_that_the_file_in_place_has_revoked_lets_nobody_in(path: Path) -> None:
    database = Database.open(path)
    keys = ApiKeys(database)
    made = keys.create("ada", 600)
    assert made is not None
    assert keys.admit(made.text) is not None
    database.close()
    database = Database.open(path)
    newer = path.with_name("newer.db")
    shutil.copy(path, newer)
    with_revoked = Database.open(newer)
    ApiKeys(with_revoked).revoke(made.id)
    with_revoked.close()
    away(path)
    os.replace(newer, path)
    with pytest.raises(StorageError):
        ApiKeys(database).revoke("any")
    with pytest.raises(StorageError, match=REPLACED):
        ApiKeys(database).admit(made.text)
    database.close()


def test_a_file_that_is_back_is_used_again(
    database: Database, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    aside = path.with_name("aside.db")
    path.rename(aside)
    for _ in range(3):
        with pytest.raises(StorageError):
            Decisions(database).add(record())
    aside.rename(path)
    database.check_writable(PATIENCE_S)
    Decisions(database).add(record())
    lines = [found.getMessage() for found in caplog.records]
    assert len(lines) == 2
    assert GONE in lines[0] and str(path) in lines[0] and "nothing is written" in lines[0]
    assert "is back" in lines[1]


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_without_the_log_that_was_opened_nothing_is_stored(
    database: Database, path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    decisions = Decisions(database)
    decisions.add(record())
    beside = path.with_name(path.name + end)
    aside = beside.rename(path.with_name("aside"))
    for look in (
        lambda: decisions.add(record()),
        lambda: decisions.page("default", 10),
        lambda: database.check_writable(PATIENCE_S),
    ):
        with pytest.raises(StorageError, match=re.escape(LOG_GONE)):
            look()
    assert caplog.text.count(LOG_GONE) == 1
    aside.rename(beside)
    decisions.add(record())
    assert len(decisions.page("default", 10).entries) == 2


@pytest.mark.parametrize("writes", [True, False])
def test_what_a_deleted_log_held_is_in_the_file(
    database: Database, path: Path, writes: bool
) -> None:
    decisions = Decisions(database)
    for _ in range(5):
        decisions.add(record())
    path.with_name(f"{path.name}-wal").unlink()
    with pytest.raises(StorageError, match="was deleted"):
        if writes:
            decisions.add(record())
        else:
            database.check_writable(PATIENCE_S)
    give_up_at = time.monotonic() + PATIENCE_S
    while stored_in(path) < 5 and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert stored_in(path) == 5


def stored_in(path: Path) -> int:
    """The decisions in the file alone, as a process finds them that starts after a kill."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    other = Database.open(copy)
    try:
        return len(Decisions(other).page("default", 10).entries)
    finally:
        other.close()


def test_the_log_is_another_one_once_nobody_has_the_database_open(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        opened = Database.open(path)
        Decisions(opened).add(record())
        other = Database.open(path)
        Decisions(other).add(record())
        opened.close()
        Decisions(other).add(record())
        other.close()
    assert caplog.text == ""


def test_reads_look_at_the_path_once_a_second(path: Path) -> None:
    path.touch()
    clock = Clock(0.0)
    opened = OpenedFile(path, clock)
    opened.check_each_second()
    path.unlink()
    clock.now = 0.9
    opened.check_each_second()
    clock.now = 1.0
    for _ in range(2):
        with pytest.raises(StorageError, match=GONE):
            opened.check_each_second()


def test_the_folder_may_be_gone_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "svc.db").touch()
    opened = OpenedFile(folder / "svc.db")
    shutil.rmtree(folder)
    folder.touch()
    with pytest.raises(StorageError, match=GONE):
        opened.check()


def test_a_database_is_writable_until_it_refuses_a_small_write(database: Database) -> None:
    database.check_writable(PATIENCE_S)

    def allow(pages: int) -> None:
        database.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}"))

    allow(1)
    with pytest.raises(StorageError, match="full"):
        Decisions(database).add(record(model="m" * 1_000_000))
    # A small write still fits.
    database.check_writable(PATIENCE_S)
    database.close()
    with pytest.raises(StorageError, match="closed"):
        database.check_writable(PATIENCE_S)


def test_whether_the_file_is_there_is_told_while_the_writer_waits(
    database: Database, path: Path
) -> None:
    go_on = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(database.write, lambda connection: go_on.wait(60))
        away(path)
        try:
            with pytest.raises(StorageError, match=GONE):
                database.check_writable(PATIENCE_S)
        finally:
            go_on.set()


def test_a_process_that_starts_later_takes_no_other_file(path: Path) -> None:
    served = ServedFile()
    Database.open(path, served=served).close()
    Database.open(path, served=served).close()
    replace(path)
    with pytest.raises(SettingsError, match=REPLACED):
        Database.open(path, served=served)


def test_a_process_that_starts_later_makes_no_new_file(path: Path) -> None:
    served = ServedFile()
    Database.open(path, served=served).close()
    away(path)
    with pytest.raises(SettingsError, match=GONE):
        Database.open(path, served=served)
    assert not path.exists()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_process_that_starts_later_makes_no_new_log(path: Path, end: str) -> None:
    served = ServedFile()
    first = Database.open(path, served=served)
    for _ in range(5):
        Decisions(first).add(record())
    path.with_name(path.name + end).unlink()
    with pytest.raises(SettingsError, match=re.escape(LOG_GONE)):
        Database.open(path, served=served)
    # The server ends, and what was answered is there with the next start.
    first.close()
    assert stored_in(path) == 5


def opened_by_another(path: Path, served: ServedFile) -> str:
    """What another process of the server finds that opens the database now."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            Database.open(path, served=served).close()
            told = "opened"
        except SettingsError as error:
            told = str(error)
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        return said.read()


def test_without_both_files_of_the_log_it_counts_whether_others_have_the_database_open(
    path: Path,
) -> None:
    served = ServedFile()
    database = Database.open(path, served=served)
    Decisions(database).add(record())
    assert opened_by_another(path, served) == "opened"
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink()
    assert LOG_GONE in opened_by_another(path, served)
    database.close()
    assert opened_by_another(path, served) == "opened"
    assert stored_in(path) == 1


def test_no_further_connection_makes_another_log(path: Path) -> None:
    Database.open(path).close()
    opened = OpenedFile(path)
    path.with_name(f"{path.name}-shm").touch()
    with pytest.raises(StorageError, match=re.escape(LOG_GONE)):
        opened.connect(lambda _: pytest.fail("it was opened"))


def test_a_file_that_goes_just_when_a_later_process_opens_it_is_not_made_again(path: Path) -> None:
    served = ServedFile()
    Database.open(path, served=served).close()
    with served.opening(path) as may_create:
        away(path)
        with pytest.raises(SettingsError, match="cannot be opened"):
            prepare(path, shipped(), may_create)
    assert not path.exists()


def test_a_file_that_goes_once_it_is_open_is_not_taken_for_the_one_that_was_served(
    path: Path,
) -> None:
    served = ServedFile()
    database = Database.open(path, served=served)
    away(path)
    with pytest.raises(SettingsError, match=GONE):
        served.settle(path, database.salt)
    database.close()


def test_of_two_processes_that_find_no_file_one_makes_it_and_the_other_waits(path: Path) -> None:
    served = ServedFile()
    read, write = os.pipe()
    with served.opening(path) as may_create:
        assert may_create
        child = os.fork()
        if not child:
            with served.opening(path) as may_create:
                os.write(write, b"made it" if may_create else b"found it")
            os._exit(0)
        prepare(path, shipped(), may_create)
        served.settle(path, b"salt")
        served.leave()
        assert not select.select([read], [], [], 0.1)[0]
    assert os.read(read, 100) == b"found it"
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)


def test_the_inode_of_a_deleted_file_makes_no_other_file_the_same(path: Path) -> None:
    served = ServedFile()
    database = Database.open(path, served=served)
    with pytest.raises(SettingsError, match=REPLACED):
        served.settle(path, bytes(len(database.salt)))
    served.settle(path, database.salt)
    database.close()
