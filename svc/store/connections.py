"""SQLite connections with this project's settings, and `sqlite3` errors as its own."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from svc.store.errors import StorageError

# The longest wait for another process that holds the file.
BUSY_TIMEOUT_S = 5.0

# The pause between two attempts, about as long as a transaction takes.
RETRY_S = 0.0005

# After a burst of writes the write-ahead log is cut to this size.
JOURNAL_BYTES = 64 * 1024 * 1024

# The page cache of each connection that reads.
READ_CACHE_KIB = 512


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection in autocommit; `mode` is `ro`, `rw`, or `rwc` to create. Threads may share it.

    The path is passed as a URI, so that no part of it can be taken for an option. A new file can
    be read by its owner alone, and SQLite gives the files beside it the same mode.
    """
    if mode == "rwc":
        # The file exists already, or SQLite says below what is wrong.
        with contextlib.suppress(OSError):
            os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )


def writing(path: Path) -> sqlite3.Connection:
    """A connection that writes durably to a database that exists.

    It never waits for a lock by itself: transactions are begun with `execute_patiently`.
    """
    return _configured(
        connect(path, "rw"),
        "PRAGMA synchronous = FULL",
        # What is deleted is overwritten with zeros, however SQLite was built.
        "PRAGMA secure_delete = ON",
        "PRAGMA foreign_keys = ON",
        "PRAGMA busy_timeout = 0",
        f"PRAGMA journal_size_limit = {JOURNAL_BYTES}",
    )


def reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; its rows know their columns by name."""
    connection = _configured(
        connect(path, "ro"),
        "PRAGMA query_only = ON",
        f"PRAGMA cache_size = -{READ_CACHE_KIB}",
    )
    connection.row_factory = sqlite3.Row
    return connection


def execute_patiently(connection: sqlite3.Connection, statement: str, patience_s: float) -> None:
    """Execute what may need a lock; raises `SQLITE_BUSY` only after `patience_s` seconds.

    SQLite's own wait sleeps longer and longer, up to 100 ms, and processes that come later
    overtake it.
    """
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up_at:
                raise
        time.sleep(RETRY_S)


def _configured(connection: sqlite3.Connection, *pragmas: str) -> sqlite3.Connection:
    try:
        for pragma in pragmas:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its extension; None for an error of the Python module."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def error_name(error: sqlite3.Error) -> str:
    """SQLite's name for the error, for the log."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def storage_error(error: sqlite3.Error) -> StorageError:
    """The error for the caller, in fixed words."""
    reasons = {
        sqlite3.SQLITE_BUSY: "the database is locked by another process",
        sqlite3.SQLITE_FULL: "the disk of the database is full",
    }
    result = StorageError(reasons.get(primary_code(error) or 0, "the database failed"))
    result.__cause__ = error
    return result
