"""Whether the database's path still leads to the file that was opened.

SQLite goes on with a file that was deleted or renamed as if it were there: what is written to it is
answered with success and gone after the next start, and keys that are revoked in the file that took
its place stay valid.

The same holds for the write-ahead log beside it: what is not in the file yet would be gone with a
log that was deleted, and a process that starts later would make another one.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import sqlite3
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from svc import files
from svc.errors import SettingsError
from svc.sharing import ProcessLock
from svc.store.errors import StorageError

# Reads look at the path this often, writes with every transaction.
LOOKED_AT_EVERY_S = 1.0

# How long a process may take to close the database: SQLite deletes the index of the log, then the
# log, and then the process says so. In seconds.
DELETED_AFTER_S = 0.3

GONE = "the database file was deleted or moved away"
REPLACED = "another file is in the place of the database file"
LOG_GONE = "the log beside the database file (-wal, -shm) was deleted, moved away or replaced"

log = logging.getLogger(__name__)

# The device and the inode of a file.
_Identity = tuple[int, int]

# Whether there is one, then device, inode and salt.
_SERVED = struct.Struct("=?QQ32s")


class OpenedLog:
    """The log and its index beside a database file, while a connection has them open."""

    def __init__(self, path: Path) -> None:
        """`path` is that of the database file."""
        self.names = _beside(path)
        self._identities: tuple[_Identity, ...] | None = None

    def note(self) -> None:
        """A connection has just begun a transaction. Raises `StorageError`."""
        try:
            self._identities = self._found()
        except OSError:
            raise StorageError(LOG_GONE) from None

    def forget(self) -> None:
        """The connection is closed, so that SQLite may delete both."""
        self._identities = None

    @property
    def is_there(self) -> bool:
        """Whether both are where they were."""
        noted = self._identities
        try:
            return noted is None or self._found() == noted
        except OSError:
            return False

    @property
    def is_deleted(self) -> bool:
        """Whether there is none any more, so that nobody else can have begun another one."""
        return self._identities is not None and not os.path.lexists(self.names[0])

    def _found(self) -> tuple[_Identity, ...]:
        return tuple(map(_identity, self.names))


class OpenedFile:
    """The file that `path` led to when this was made; it is meant to stay there."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        when_log_is_gone: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock` gives seconds; `when_log_is_gone` is called once."""
        self._path = path
        # A path as text is looked at faster.
        self._name = str(path)
        self._clock = clock
        self._when_log_is_gone = when_log_is_gone
        self.log = OpenedLog(path)
        self._identity = _identity(self._name)
        # Whether a link stands there.
        self._is_link = os.path.islink(self._name)
        self._trouble: str | None = None
        self._due = 0.0

    def check(self) -> None:
        """Raise `StorageError` unless the path leads to the file; what changed is logged once."""
        trouble = self._found()
        if trouble != self._trouble:
            self._trouble = trouble
            self._tell(trouble)
            if trouble == LOG_GONE:
                self._when_log_is_gone()
        if trouble is not None:
            raise StorageError(trouble)

    def check_each_second(self) -> None:
        """The same for what happens often: it looks at the path once a second.

        While something is wrong it looks each time, so that nothing is refused for longer.
        """
        now = self._clock()
        if now < self._due and self._trouble is None:
            return
        self._due = now + LOOKED_AT_EVERY_S
        self.check()

    def connect(self, opener: Callable[[Path], sqlite3.Connection]) -> sqlite3.Connection:
        """A new connection, certainly to this file. Raises `StorageError` and SQLite's errors."""
        self.check()
        if _for_a_while(lambda: _lacks_one(self._path)):
            raise StorageError(LOG_GONE)
        connection = opener(self._path)
        try:
            self.check()
        except StorageError:
            with closing(connection):
                raise
        return connection

    def _found(self) -> str | None:
        """What is wrong, None where all is well."""
        try:
            same = _identity(self._name) == self._identity and self._is_in_place
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except OSError as error:
            return f"the database file cannot be looked at ({error.strerror})"
        if not same:
            return REPLACED
        return None if self.log.is_there else LOG_GONE

    @property
    def _is_in_place(self) -> bool:
        """Whether the path leads to the file as before.

        Behind a link that took its place SQLite would have another log.
        """
        is_file = not self._is_link and not os.path.islink(self._name)
        return is_file or _beside(self._path) == self.log.names

    def _tell(self, trouble: str | None) -> None:
        if trouble is None:
            log.warning("the database file %r is back; it is used again", self._name)
            return
        log.error(
            "%s: %r; every request that needs it fails, and nothing is written, until the file "
            "that was there at the start is back or the server is started again",
            trouble,
            self._name,
        )


class ServedFile:
    """The database file of one server: the one that the first of its processes opened.

    A process that starts later, in the place of one that died, would make a new file where that one
    was deleted, and find no keys in it. The salt is a part of who the file is, because systems give
    the inode of a deleted file to the next one.
    """

    def __init__(self) -> None:
        """Made before the processes are forked that share it."""
        self._lock = ProcessLock()
        self._users = _Users()
        self._memory = mmap.mmap(-1, _SERVED.size)

    @contextmanager
    def opening(self, path: Path) -> Iterator[bool]:
        """Have other processes wait while this one opens `path`; gives whether it may make it.

        Raises `SettingsError` unless `path` leads to the file, where it is known.
        """
        with self._lock:
            known = bool(self._memory[0])
            if known:
                self._check(path, _SERVED.unpack(self._memory)[3])
            yield not known

    def settle(self, path: Path, salt: bytes) -> None:
        """While it is opened: note the file, or raise `SettingsError` where it is another one."""
        if self._memory[0]:
            self._check(path, salt)
        else:
            self._memory[:] = _SERVED.pack(True, *_identity(str(path)), salt)
        self._users.join()

    def leave(self) -> None:
        """This process has closed a database that was settled."""
        self._users.leave()

    def _check(self, path: Path, salt: bytes) -> None:
        if _for_a_while(lambda: _lacks_one(path) or (_has_none(path) and self._users.others)):
            raise _refused(path, LOG_GONE)
        try:
            found = _SERVED.pack(True, *_identity(str(path)), salt)
        except OSError:
            raise _refused(path, GONE) from None
        if self._memory[:] != found:
            raise _refused(path, REPLACED)

    def close(self) -> None:
        """Release it in this process."""
        self._lock.close()
        self._users.close()


class _Users:
    """The processes that have the database open; the system forgets one that ends in any way.

    Each locks the same file that has no name. Such locks belong to processes and are not forked.
    """

    def __init__(self) -> None:
        self._file = files.nameless()
        self.close = weakref.finalize(self, os.close, self._file)
        # How often the process with this id has it open.
        self._opened = 0, 0

    def join(self) -> None:
        """This process has opened it."""
        self._count(1)
        fcntl.lockf(self._file, fcntl.LOCK_SH)

    def leave(self) -> None:
        """This process has closed it."""
        if not self._count(-1):
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    @property
    def others(self) -> bool:
        """Whether another process has it open."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
        fcntl.lockf(self._file, fcntl.LOCK_SH if self._count(0) else fcntl.LOCK_UN)
        return False

    def _count(self, more: int) -> int:
        pid, count = self._opened
        self._opened = os.getpid(), max(0, (count if pid == os.getpid() else 0) + more)
        return self._opened[1]


def _refused(path: Path, trouble: str) -> SettingsError:
    return SettingsError(
        f"database {str(path)!r}: {trouble} while the server ran; put it back, or start the "
        "server again on what is there now"
    )


def _beside(path: Path) -> tuple[str, str]:
    """The names of the log and of its index: SQLite has them where a link to the file leads."""
    there = os.path.realpath(path)
    return f"{there}-wal", f"{there}-shm"


def _lacks_one(path: Path) -> bool:
    """Whether one of the log and its index is there without the other.

    SQLite would make another, and so forget or overwrite what other processes have in the log.
    """
    return len({os.path.lexists(name) for name in _beside(path)}) > 1


def _has_none(path: Path) -> bool:
    """Whether there is neither, as after the last process has closed the database."""
    return not any(map(os.path.lexists, _beside(path)))


def _for_a_while(found: Callable[[], bool]) -> bool:
    """Whether something stays true that is for a moment while a process closes the database."""
    if not found():
        return False
    time.sleep(DELETED_AFTER_S)
    return found()


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino
