"""Rows that every request needs of tables that are hardly ever written, such as API keys.

A server keeps them in memory until one of this project's processes says that it wrote to such a
table, by new bytes in a small file beside the database. The server has this file mapped into its
memory: to look there takes no system call, and so never gives the interpreter's lock away. What
another program writes is seen within a second.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from svc.errors import SettingsError

# Chance makes no two marks the same.
_MARK_BYTES = 16

# Rows are read again after so long, whatever the mark says: its file may have been deleted, and a
# process may have been killed between its write and the mark.
KEPT_S = 1.0

# The most characters and bytes that are kept, about: callers send keys that do not exist, and
# questions that nobody asks again. So much counts for each query beside its texts.
MOST_BYTES = 4_000_000
_QUERY_BYTES = 500

# What is asked of the database: a query and its values.
_Question = tuple[str, tuple[object, ...]]


class _Kept:
    """What was read since the file had `mark`; it counts until `until`, a time of the clock."""

    __slots__ = ("mark", "rows", "size", "until")

    def __init__(self, mark: bytes, until: float) -> None:
        self.mark, self.until = mark, until
        self.rows: dict[_Question, list[sqlite3.Row]] = {}
        self.size = 0

    def keep(self, question: _Question, rows: list[sqlite3.Row]) -> None:
        self.size += _size(question, rows)
        if self.size > MOST_BYTES:
            self.rows, self.size = {}, _size(question, rows)
        self.rows[question] = rows


class Remembered:
    """The rows of one database in the memory of a server's process."""

    def __init__(
        self,
        database: Path,
        read: Callable[..., list[sqlite3.Row]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` takes a query and its values; `clock` gives seconds.

        Raises `SettingsError` where there can be no file beside the database.
        """
        self._read, self._clock = read, clock
        self._mark = _mapped(_beside(database))
        self._kept = _Kept(b"", 0.0)

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """All rows of a query, from memory where nothing was written since."""
        # Before the rows are read, so that they are never older than it says.
        mark, now = self._mark[:], self._clock()
        kept = self._kept
        if kept.mark != mark or now >= kept.until:
            kept = self._kept = _Kept(mark, now + KEPT_S)
        question = query, values
        found = kept.rows.get(question)
        if found is None:
            found = self._read(query, *values)
            kept.keep(question, found)
        return found

    def say_changed(self) -> None:
        """Have every server on this database, this one too, read again what it remembers."""
        self._mark[:] = secrets.token_bytes(_MARK_BYTES)


def say_changed(database: Path) -> None:
    """The same, said by a process that remembers nothing."""
    # Without the file there is no server that remembers; else they look for themselves soon.
    with contextlib.suppress(OSError):
        descriptor = os.open(_beside(database), os.O_WRONLY | os.O_NOFOLLOW)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(secrets.token_bytes(_MARK_BYTES))


def _beside(database: Path) -> str:
    # As SQLite names its own files: by where a link leads to.
    return os.path.realpath(database) + "-changes"


def _mapped(path: str) -> mmap.mmap:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "rb+", buffering=0) as file:
            if os.fstat(descriptor).st_size < _MARK_BYTES:
                file.write(secrets.token_bytes(_MARK_BYTES))
            return mmap.mmap(descriptor, _MARK_BYTES)
    except OSError as error:
        raise SettingsError(f"{path!r}: {error.strerror}; the server needs this file") from error


def _size(question: _Question, rows: list[sqlite3.Row]) -> int:
    query, values = question
    cells = [query, *values, *(cell for row in rows for cell in row)]
    return _QUERY_BYTES + sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
