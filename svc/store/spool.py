"""Inputs of jobs on their way: one sealed file for each job, in a folder beside the database.

A file begins with the request that all rows share, and goes on with blocks of rows. Each is sealed
with the master key, together with the job and its own number, so that none can be read, changed, or
put in another's place. A file is complete and on the disk before its job is in the database, and is
deleted when the job ends.

Whoever writes a file holds a lock on it until its job is in the database. The system releases the
lock when a process ends in whatever way, so a file without a lock and without a job is one that
nobody needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from svc import limits
from svc.files import make_private, sync_folder
from svc.shares import Shares
from svc.store.database import Database
from svc.store.errors import SpoolLost, StorageError, WriteTimedOut
from svc.store.job_sealing import JobSealing
from svc.store.jobs import ID_PREFIX
from svc.store.sealing import GET_SALT, Sealer, made_salt

_SALT = "spool_salt"

# A block ends with the row with which it has so many characters.
BLOCK_CHARS = 262_144

# Before each sealed block: the number of its first row, 0 for the request; how many rows it has;
# and its bytes.
_HEAD = struct.Struct(">III")

# The folder for batches of a job has this before the job's id.
_BOOK = "book_"

# What follows the job's id in the name of such a folder that was put aside, before a random word.
_ASIDE = ".aside-"

# The locks of the one process that runs the jobs of this database, of the one that deletes what is
# older than it may be, and of the one that tells hooks what happens.
_RUNNER, _SWEEPER, _TELLER = "runner.lock", "sweeper.lock", "teller.lock"

_JOBS = "SELECT id FROM jobs"

# How the name of a file ends that is to take the place of another one.
_PART = ".part"

# Says which database the folder is of. Where another one was put in its place, as by a slip of
# whoever restores a backup, nothing may be deleted that the right one needs.
_OWNER = "database"

# The user who may use the files of all others.
_ROOT = 0

log = logging.getLogger(__name__)


class Spool:
    """The files of one database."""

    def __init__(self, database: Database, path: str | Path, master_key: str | None) -> None:
        """`path` is that of the database, or of a link to it.

        The bytes of calls that jobs keep in their books are taken from `room`, and places for
        blocks of which memory holds the replies from `replayed`. Raises `StorageError` where rows
        of jobs are in a folder of an older version and cannot be moved.
        """
        self.folder = Path(f"{os.path.realpath(path)}.spool")
        self._database, self._path = database, path
        self._move_from(Path(f"{path}.spool"))
        self._sealer = None if master_key is None else Sealer(master_key)
        self.room = Shares(limits.WAITING_CALLS_BYTES)
        self.replayed = Shares(limits.BLOCKS_REPLAYED)

    def _move_from(self, before: Path) -> None:
        """Take the folder over that an older version made beside a link to the database."""
        owner = before / _OWNER
        if not owner.is_file() or (self.folder.exists() and before.samefile(self.folder)):
            return
        if owner.read_text("ascii", "replace") != self._name() or not _has_jobs(before):
            return
        try:
            if not self.folder.exists():
                before.rename(self.folder)
                return
            why = "which is there already"
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
        raise StorageError(
            f"the rows of jobs lie in {str(before)!r} and belong in {str(self.folder)!r} ({why}); "
            "move all that is in it there, and start again"
        )

    @property
    def has_key(self) -> bool:
        """Whether there is a master key."""
        return self._sealer is not None

    @contextlib.contextmanager
    def writing(self, job_id: str, request: str, rows: Iterable[str]) -> Iterator[None]:
        """Inside the block the file of a job is there and durable, and nobody deletes it.

        `request` and `rows` are JSON. An exception in the block deletes the file, but for a
        `WriteTimedOut`. Raises `StorageError` where it cannot be written, and then there is none.
        """
        self._require_key()
        salt = self._database.write(lambda connection: made_salt(connection, _SALT))
        path = self.folder / job_id
        try:
            with self._new(path) as file:
                try:
                    for first, count, text in _blocks(request, rows):
                        file.write(self._sealed(job_id, salt, first, count, text))
                    file.flush()
                    os.fsync(file.fileno())
                    sync_folder(self.folder)
                    yield
                except WriteTimedOut:
                    # The job may be there all the same, and needs the file; without one it is
                    # swept away later.
                    raise
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise StorageError(
                f"the rows could not be written beside the database: {reason}"
            ) from error

    def replace(self, job_id: str, changed: Callable[[int, str], str]) -> None:
        """Write the file of a job anew, with its rows `changed` from their number and JSON.

        Who reads the old one finds the new one with `renewed`. Raises `SpoolLost` and
        `StorageError`.
        """
        salt, old = self._salt(), self.opened(job_id)
        part = self.folder / f"{job_id}{_PART}"
        # A process may have been killed that wrote it.
        self._delete_unlocked(part, lambda _name: False)
        try:
            with closing(old), self._new(part) as file:
                file.write(self._sealed(job_id, salt, 0, 1, old.request))
                while block := old.rows(lambda _: True):
                    first, rows = block
                    texts = [changed(number, text) for number, text in enumerate(rows, first)]
                    file.write(self._sealed(job_id, salt, first, len(rows), "\n".join(texts)))
                file.flush()
                os.fsync(file.fileno())
                part.replace(self.folder / job_id)
                sync_folder(self.folder)
        except OSError as error:
            raise StorageError(f"the spool cannot be written ({error.strerror})") from error

    def renewed(self, file: SpoolFile) -> SpoolFile:
        """The same file, or the one that took its place, read as far; then this one is closed.

        Raises `SpoolLost` and `StorageError`.
        """
        if file.is_at(self.folder / file.job_id):
            return file
        with closing(file):
            other = self.opened(file.job_id)
        other.skip_to(file.read_to)
        return other

    def opened(self, job_id: str) -> SpoolFile:
        """The file of a job, to be read.

        Raises `SpoolLost` where it is gone, damaged or sealed with another key; `StorageError`.
        """
        sealer, salt = self._require_key(), self._salt()
        try:
            file = (self.folder / job_id).open("rb")
        except FileNotFoundError:
            raise SpoolLost("its rows are gone from the folder beside the database") from None
        except OSError as error:
            raise StorageError(f"the spool cannot be read ({error.strerror})") from error
        return SpoolFile(file, job_id, sealer, salt)

    def sealing(self, job_id: str) -> JobSealing:
        """Seals further files of a job. Raises `SpoolLost` and `StorageError`."""
        return JobSealing(job_id, self._require_key(), self._salt())

    def book(self, job_id: str) -> Path:
        """The folder for what a job asks of providers in batches."""
        return self.folder / f"{_BOOK}{job_id}"

    def put_book_aside(self, job_id: str) -> None:
        """Take the folder away from an open job, which begins another, if it has one.

        The processes that run jobs end what it has at providers, and delete it. Whoever is at work
        in it gets an error. Raises `StorageError`.
        """
        path = self.book(f"{job_id}{_ASIDE}{secrets.token_hex(4)}")
        try:
            with contextlib.suppress(FileNotFoundError):
                self.book(job_id).rename(path)
        except OSError as error:
            raise StorageError(f"the spool cannot be written ({error.strerror})") from error

    def books_aside(self) -> list[str]:
        """What stands for the ids of jobs in the names of folders that were put aside."""
        return [name for name in self.books() if Path(name).suffix.startswith(_ASIDE)]

    def books(self) -> list[str]:
        """The ids of the jobs of this database that have such a folder."""
        return [path.name.removeprefix(_BOOK) for path in self._ours(f"{_BOOK}{ID_PREFIX}*")]

    def delete(self, job_id: str) -> None:
        """Delete the file of a job, if it is there."""
        try:
            (self.folder / job_id).unlink(missing_ok=True)
        except OSError as error:
            log.error("the rows of %s could not be deleted (%s)", job_id, error.strerror)

    def sweep(self, is_open: Callable[[str], bool]) -> None:
        """Delete every file without an open job that nobody is writing. Raises `StorageError`."""
        for path in self.files():
            if not is_open(path.name):
                self._delete_unlocked(path, is_open)

    def files(self) -> list[Path]:
        """The files of jobs of this database that are there."""
        return self._ours(f"{ID_PREFIX}*")

    def _ours(self, pattern: str) -> list[Path]:
        """What has such a name; where the folder is another database's, of jobs of this one alone.

        What else is there, the other one may still need.
        """
        found = list(self.folder.glob(pattern))
        if not found or self._is_ours():
            return found
        ids = {row["id"] for row in self._database.rows(_JOBS)}
        return [path for path in found if job_of(path.name.removeprefix(_BOOK)) in ids]

    def _is_ours(self) -> bool:
        owner = self.folder / _OWNER
        # The disk may have been full when it was made.
        said = owner.read_text("ascii", "replace") if owner.exists() else ""
        return said in ("", self._name())

    def _claim(self) -> None:
        """Say whose the folder is, where nobody has said that, or nothing is there of who did."""
        owner = self.folder / _OWNER
        # It is empty where the disk was full when it was made.
        is_said = owner.exists() and owner.stat().st_size > 0
        if not is_said or not (self._is_ours() or _has_jobs(self.folder)):
            owner.write_text(self._name(), "ascii")

    def _name(self) -> str:
        """What tells this database from others."""
        return hashlib.sha256(b"spool" + self._database.salt).hexdigest()

    @contextlib.contextmanager
    def running(self) -> Iterator[bool]:
        """Inside the block this process is the one that runs jobs; False where another one is.

        Raises `StorageError` where the folder cannot be used.
        """
        with self._alone(_RUNNER) as alone:
            yield alone

    @contextlib.contextmanager
    def sweeping(self) -> Iterator[bool]:
        """The same for the process that deletes what is older than it may be."""
        with self._alone(_SWEEPER) as alone:
            yield alone

    @contextlib.contextmanager
    def telling(self) -> Iterator[bool]:
        """The same for the process that tells hooks what happens."""
        with self._alone(_TELLER) as alone:
            yield alone

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[bool]:
        try:
            make_private(self.folder, self._owner().st_uid)
            file = (self.folder / name).open("ab")
        except OSError as error:
            raise StorageError(f"the spool cannot be used ({error.strerror})") from error
        with file:
            yield _try_lock(file)

    def _owner(self) -> os.stat_result:
        """Whose the database is: the server's user, while root may run commands."""
        return os.stat(self._path)

    def _salt(self) -> bytes:
        rows = self._database.rows(GET_SALT, _SALT)
        if not rows:
            raise SpoolLost("the salt of the spool is gone from the database")
        return bytes(rows[0]["value"])

    def _sealed(self, job_id: str, salt: bytes, first: int, count: int, text: str) -> bytes:
        """A block with what stands before it."""
        token = self._require_key().seal(_labelled(job_id, first, count, text), salt)
        return _HEAD.pack(first, count, len(token)) + token

    def _require_key(self) -> Sealer:
        if self._sealer is None:
            raise SpoolLost("there is no master key")
        return self._sealer

    @contextlib.contextmanager
    def _new(self, path: Path) -> Iterator[BinaryIO]:
        """A new file, locked; it belongs to the owner of the database."""
        owner = self._owner()
        make_private(self.folder, owner.st_uid)
        self._claim()
        while True:
            made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(made, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.geteuid() == _ROOT:
                    os.fchown(made, owner.st_uid, owner.st_gid)
                if _is_there(path, file):
                    yield file
                    return
            # It was deleted before it was locked, as one that nobody was writing.

    def _delete_unlocked(self, path: Path, is_open: Callable[[str], bool]) -> None:
        with contextlib.suppress(OSError), path.open("rb") as file:
            # Its job may have come into the database before the lock was released.
            if _try_lock(file) and not is_open(path.name):
                path.unlink()


class SpoolFile:
    """The rows of one job, read a block at a time."""

    def __init__(self, file: BinaryIO, job_id: str, sealer: Sealer, salt: bytes) -> None:
        """Only `Spool.opened` calls this."""
        self._file, self.job_id, self._sealer, self._salt = file, job_id, sealer, salt
        self._next = 1
        try:
            # The JSON of what all rows share.
            self.request = self._text(*self._head(0))
        except SpoolLost:
            file.close()
            raise

    def rows(self, wanted: Callable[[range], bool]) -> tuple[int, list[str]] | None:
        """The next block that is wanted: the number of its first row, and the JSON of its rows.

        `wanted` says so of the numbers of its rows; the others are not even opened. None stands
        for the end. Raises `SpoolLost`.
        """
        while head := self._read(_HEAD.size):
            first, count, size = self._unpacked(head)
            if first != self._next:
                raise SpoolLost("its rows beside the database are damaged")
            self._next += count
            if wanted(range(first, first + count)):
                texts = self._text(first, count, size).split("\n")
                return first, texts
            self._file.seek(size, os.SEEK_CUR)
        return None

    def row(self, number: int) -> str:
        """The JSON of one row, wherever it is; the next block is the same. Raises `SpoolLost`."""
        at, following = self._file.tell(), self._next
        try:
            self._file.seek(0)
            self._next = 0
            found = self.rows(lambda numbers: number in numbers)
        finally:
            self._file.seek(at)
            self._next = following
        if found is None:
            raise SpoolLost("its rows beside the database are cut short")
        return found[1][number - found[0]]

    def sizes(self) -> array[int]:
        """How many bytes the JSON of each row has as a text in JSON, of those not read yet.

        Raises `SpoolLost`.
        """
        sizes = array("L")
        while block := self.rows(lambda _: True):
            sizes.extend(len(json.dumps(text, ensure_ascii=False).encode()) for text in block[1])
        return sizes

    @property
    def read_to(self) -> int:
        """The number of the last row of the blocks so far."""
        return self._next - 1

    def is_at(self, path: Path) -> bool:
        """Whether the path leads to this file."""
        return _is_there(path, self._file)

    def skip_to(self, number: int) -> None:
        """Go on after the block that ends with this row. Raises `SpoolLost`."""
        while self.read_to < number:
            _, count, size = self._unpacked(self._read(_HEAD.size))
            self._next += count
            self._file.seek(size, os.SEEK_CUR)

    def close(self) -> None:
        """May be called again."""
        self._file.close()

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise SpoolLost(
                f"its rows beside the database cannot be read ({error.strerror})"
            ) from None

    def _head(self, first: int) -> tuple[int, int, int]:
        head = self._unpacked(self._read(_HEAD.size))
        if head[0] != first:
            raise SpoolLost("its rows beside the database are damaged")
        return head

    def _unpacked(self, head: bytes) -> tuple[int, int, int]:
        if len(head) < _HEAD.size:
            raise SpoolLost("its rows beside the database are cut short")
        first, count, size = _HEAD.unpack(head)
        return first, count, size

    def _text(self, first: int, count: int, size: int) -> str:
        """What was sealed as this block of this job."""
        text = self._sealer.open(self._read(size), self._salt)
        label, _, content = (text or "").partition("\n")
        if label != _label(self.job_id, first, count):
            raise SpoolLost(
                "its rows beside the database are damaged, or were sealed with another master key"
            )
        return content


def job_of(name: str) -> str:
    """The id of the job whose folder for batches has this name, also where it was put aside."""
    return name.partition(_ASIDE)[0]


def _has_jobs(folder: Path) -> bool:
    """Whether rows or batches of jobs are in a folder."""
    return any(any(folder.glob(name)) for name in (f"{ID_PREFIX}*", f"{_BOOK}{ID_PREFIX}*"))


def _blocks(request: str, rows: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """The number of the first row, how many rows, and their text, of each block."""
    yield 0, 1, request
    first, waiting, chars = 1, list[str](), 0
    for row in rows:
        waiting.append(row)
        chars += len(row)
        if chars >= BLOCK_CHARS:
            yield first, len(waiting), "\n".join(waiting)
            first, waiting, chars = first + len(waiting), [], 0
    if waiting:
        yield first, len(waiting), "\n".join(waiting)


def _label(job_id: str, first: int, count: int) -> str:
    return f"{job_id} {first} {count}"


def _labelled(job_id: str, first: int, count: int, text: str) -> str:
    return f"{_label(job_id, first, count)}\n{text}"


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(path: Path, file: BinaryIO) -> bool:
    """Whether the path leads to this file."""
    with contextlib.suppress(FileNotFoundError):
        found, own = path.stat(), os.fstat(file.fileno())
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
    return False
