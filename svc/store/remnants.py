"""What SQLite leaves of deleted rows in unused places of its file, overwritten with zeros.

With `secure_delete` it overwrites what it deletes. But where it moves rows from one page to
another, as when a page is full, copies may stay behind in the free part of the page, and are not
found when the row is deleted later. The format of the file: https://www.sqlite.org/fileformat2.html

Writing into the file beside SQLite is safe for these reasons. Only bytes are written that SQLite
itself never reads, so that no reader and no crash in between can tell the difference. It is done
while this process has the lock on writing and the log has no bytes, so that nobody changes a page,
and nobody moves one from the log into the file. What others remember of pages is void after the
write that ends each turn; one who began to read before it cannot write any more. Files for which
one of this does not hold, or which are damaged, are refused.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from svc.store.connections import execute_patiently, primary_code, storage_error, writing
from svc.store.errors import StorageError

if TYPE_CHECKING:
    from svc.store.free_pages import FreePages

# Who reads pages before they are clean may copy parts of them to others, so that the file is looked
# through again as long as something is found, but no more often than this.
ROUNDS = 4

# How many pages are cleaned in one turn, while which nobody else writes. After it others write for
# so many times as long.
TOGETHER = 200
REST = 3.0

# Of how many pages it is found out together which are free, before a turn.
LOOKED_AT = 100_000

# How long to try to move the log into the file, in seconds, each time that it has to be empty, and
# the pause between two attempts.
PATIENCE_S = 60.0
RETRY_S = 0.02

# One attempt of so many waits so long for readers, in milliseconds, while nobody may write: where
# some read and write all the time, there is no moment without them.
ATTEMPTS, HOLD_MS = 16, 50

# From so many pages on (137 GB with the usual ones) other pages could be taken for those of trees.
MOST_PAGES = 2 << 24

_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
# Offsets in the header of the file: the bytes of a page, the version of its format for writing and
# for reading, the bytes at the end of each page that extensions use, the first page of the list of
# free ones, how many are free, and what is not 0 in a file with pages that only say whose others
# are.
_PAGE_SIZE, _VERSIONS, _RESERVED, _FREE, _FREE_COUNT, _AUTO_VACUUM = 16, 18, 20, 32, 36, 52
_LARGEST_PAGE = 65_536
_WITH_LOG = bytes((2, 2))

# SQLite locks bytes from here on and leaves the page alone in which they are.
_LOCKS_AT = 1 << 30

# The bytes of the head of a page of a tree, by its type: pages that lead on have four more.
_HEADS = {2: 12, 5: 12, 10: 8, 13: 8}
# The first free block, the number of cells, where cells begin.
_HEAD = struct.Struct(">xHHH")
# The next free block, and the bytes of this one.
_BLOCK = struct.Struct(">HH")

_TOUCH = (
    "INSERT INTO meta (name, value) VALUES ('cleaned', 1) "
    "ON CONFLICT (name) DO UPDATE SET value = value + 1"
)

# A part of a page or a file: its offset and its bytes.
_Span = tuple[int, int]


class Remnants:
    """Cleans one database file, beside any number of processes that use it.

    Its own descriptor stays open until `close`, and it has no other: when a process closes one, the
    system drops the locks that SQLite has on the file in this process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._file: BinaryIO = self._path.open("r+b", buffering=0)

    def close(self) -> None:
        """After every connection of this process to the file."""
        self._file.close()

    def clean(self, patience_s: float = PATIENCE_S) -> bool:
        """Empty the log and overwrite all that nothing uses; False where a reader holds the log.

        Each time that it has to be empty, that is tried for `patience_s`. What others write
        meanwhile is theirs. Raises `StorageError`, also for a file that is
        damaged or has a form in which it could be.
        """
        try:
            return self._clean_all(patience_s)
        except sqlite3.Error as error:
            raise storage_error(error) from error
        except OSError as error:
            raise StorageError(f"the file cannot be written to ({error.strerror})") from error

    def _clean_all(self, patience_s: float) -> bool:
        with contextlib.closing(writing(self._path)) as connection:
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            _check_whole(connection)
            if not _emptied(connection, patience_s):
                return False
            self._check_form()
            for _ in range(ROUNDS):
                dirty = self._dirty()
                if not all(self._clean(connection, part, patience_s) for part in _parts(dirty)):
                    return False
                if not _emptied(connection, patience_s):
                    return False
                if not dirty:
                    break
            os.fsync(self._file.fileno())
            return True

    def _check_form(self) -> None:
        head = self._header()
        if not head.startswith(_MAGIC) or head[_VERSIONS:_RESERVED] != _WITH_LOG:
            raise StorageError("it is no SQLite file with a log for writing ahead")
        if head[_RESERVED]:
            raise StorageError("an extension of SQLite uses bytes of each page, as for checksums")
        if int.from_bytes(head[_AUTO_VACUUM : _AUTO_VACUUM + 4]):
            raise StorageError(
                "it has auto_vacuum, with pages that others could be taken for; stop the server, "
                "and run: PRAGMA auto_vacuum = NONE; VACUUM"
            )

        if self._size()[1] >= MOST_PAGES:
            raise StorageError(f"it has {MOST_PAGES:,} pages or more, which cannot be told apart")

    def _dirty(self) -> list[int]:
        """The numbers of pages in which something is to be overwritten."""
        size, pages = self._size()
        # Others may be writing, so that this is a guess until `_clean` looks again.
        free, dirty = self._free(size, pages), []
        for begin in range(1, pages + 1, LOOKED_AT):
            numbers = range(begin, min(begin + LOOKED_AT, pages + 1))
            used = free.among(numbers)
            dirty += [
                number
                for number in numbers
                if any(_unclean(self._page(number, size), number, used.get(number)))
            ]
        return dirty

    def _size(self) -> tuple[int, int]:
        """The bytes of a page, and how many pages there are."""
        head = self._header()
        size = int.from_bytes(head[_PAGE_SIZE : _PAGE_SIZE + 2])
        size = _LARGEST_PAGE if size == 1 else size
        return size, os.fstat(self._file.fileno()).st_size // size

    def _header(self) -> bytes:
        return os.pread(self._file.fileno(), _HEADER_BYTES, 0)

    def _page(self, number: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, (number - 1) * size)

    def _free(self, size: int, pages: int) -> FreePages:
        # Here, as to import numpy takes a tenth of a second, for which no other command waits.
        from svc.store.free_pages import FreePages

        first = int.from_bytes(self._header()[_FREE : _FREE + 4])
        return FreePages(lambda number: self._page(number, size), first, pages)

    def _check_free(self, free: FreePages) -> None:
        """Raise `StorageError` where these are not as many as the file says."""
        count = int.from_bytes(self._header()[_FREE_COUNT : _FREE_COUNT + 4])
        if len(free) != count:
            raise StorageError(f"it is damaged: {len(free)} free pages are listed of {count}")

    def _clean(
        self, connection: sqlite3.Connection, pages: Sequence[int], patience_s: float
    ) -> bool:
        """Overwrite what is unused in these pages, while nobody writes and the log is empty.

        Nobody moves pages from an empty log into the file, and nobody can write to the log.
        """
        give_up_at = time.monotonic() + patience_s
        # One that remembers no page from before.
        with contextlib.closing(writing(self._path)) as writer:
            while not self._begin(writer):
                if time.monotonic() >= give_up_at or not _emptied(connection, patience_s):
                    return False
            began = time.monotonic()
            self._overwrite(writer, pages)
        time.sleep(REST * (time.monotonic() - began))
        return True

    def _overwrite(self, connection: sqlite3.Connection, pages: Sequence[int]) -> None:
        try:
            self._check_form()
            size, count = self._size()
            free = self._free(size, count)
            self._check_free(free)
            used = free.among(pages)
            spans = [
                ((number - 1) * size + offset, length)
                for number in pages
                if number <= count
                for offset, length in _unclean(self._page(number, size), number, used.get(number))
            ]
            for offset, length in spans:
                os.pwrite(self._file.fileno(), bytes(length), offset)
            # A write has others read pages anew, who would else write back what they remember.
            connection.execute(_TOUCH)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _begin(self, connection: sqlite3.Connection) -> bool:
        """Begin to write; False where there is something in the log, and it did not begin."""
        execute_patiently(connection, "BEGIN IMMEDIATE", PATIENCE_S)
        log = Path(f"{self._path}-wal")
        if log.exists() and log.stat().st_size == 0:
            return True
        connection.execute("ROLLBACK")
        return False


def _emptied(connection: sqlite3.Connection, patience_s: float) -> bool:
    """Move the log into the file and cut it to nothing; False where it is held for too long.

    It is tried again and again and seldom waited for: SQLite keeps writers waiting meanwhile.
    """
    attempt, give_up_at = 0, time.monotonic() + patience_s
    while True:
        attempt += 1
        wait_ms = 0 if attempt % ATTEMPTS else HOLD_MS
        try:
            connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            busy = 1
        if not busy:
            return True
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(RETRY_S)


def _check_whole(connection: sqlite3.Connection) -> None:
    """Raise `StorageError` for a damaged file, of which nobody knows what is unused."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StorageError("it is damaged, see PRAGMA integrity_check")


def _parts(pages: Sequence[int]) -> Iterator[Sequence[int]]:
    for begin in range(0, len(pages), TOGETHER):
        yield pages[begin : begin + TOGETHER]


def _unclean(page: bytes, number: int, used: int | None) -> Iterator[_Span]:
    """The unused parts of a page that do not hold zeros alone.

    `used` has the bytes at the beginning of a free page that are in use, None for any other page.
    """
    if not page or (number - 1) * len(page) == _LOCKS_AT:
        return
    spans = _of_tree(page, number) if used is None else [(used, len(page) - used)]
    for offset, length in spans:
        if length > 0 and page.count(0, offset, offset + length) != length:
            yield offset, length


def _of_tree(page: bytes, number: int) -> Iterator[_Span]:
    """What nothing uses of a page of a tree: before its first cell, and in its free blocks."""
    head = _HEADER_BYTES if number == 1 else 0
    length = _HEADS.get(page[head])
    if length is None:
        # Long texts go on in pages of their own.
        return
    block, cells, content = _HEAD.unpack_from(page, head)
    begin = head + length + 2 * cells
    content = content or _LARGEST_PAGE
    # Else it is no such page, or damaged.
    if content <= len(page):
        yield begin, content - begin
    while 0 < block <= len(page) - _BLOCK.size:
        following, bytes_free = _BLOCK.unpack_from(page, block)
        if block + bytes_free <= len(page):
            yield block + _BLOCK.size, bytes_free - _BLOCK.size
        # They stand in order.
        block = following if following > block else 0
