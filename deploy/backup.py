"""Copy a database while its server runs:  python3 backup.py <database> <copy>

The copy holds every decision that was answered before this began, and is checked before it takes
the place of an older one. Needs the standard library alone; the server goes on writing meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

PATIENCE_S = 60  # seconds for a writer of the moment


def back_up(database: Path, copy: Path) -> None:
    """Copy `database` to `copy`, durably.

    Raises `sqlite3.Error` or `OSError`, and leaves an older copy as it was.
    """
    part = copy.with_name(copy.name + ".part")
    _check(database, copy, part)
    with _held(part) as held:
        try:
            _copy(database, part)
            os.fsync(held)
            part.replace(copy)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(copy.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _held(part: Path) -> Iterator[int]:
    """The file that is to become the copy, empty and locked against other backups to this place."""
    held = os.open(part, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        own = os.fstat(held)
        # The backup that had it until now has made it the copy, or deleted it.
        if not (part.exists() and os.path.samestat(part.stat(), own)):
            raise BlockingIOError
        if not stat.S_ISREG(own.st_mode) or own.st_uid != os.geteuid() or own.st_nlink > 1:
            raise OSError(f"{part} is no file of this user alone; remove it first")
        os.fchmod(held, 0o600)
        os.ftruncate(held, 0)
        yield held
    except BlockingIOError:
        raise OSError(f"another backup writes {part}") from None
    finally:
        os.close(held)


def _check(database: Path, copy: Path, part: Path) -> None:
    """Raise `OSError` for a place in which a copy would do harm."""
    own = [path for path in (database, *_beside(database.resolve())) if path.exists()]
    for place in (copy, part):
        if place.exists() and any(place.samefile(path) for path in own):
            raise OSError(f"{place} is of the database itself")
    for path in _beside(copy):
        if path.exists():
            raise OSError(f"there is {path}: the copy is in use, or was; remove both first")


def _beside(database: Path) -> list[Path]:
    """What SQLite keeps beside a database that is open, and reads when it is opened again."""
    return [database.with_name(database.name + end) for end in ("-wal", "-shm", "-journal")]


def _copy(database: Path, part: Path) -> None:
    source = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_S)
    with contextlib.closing(source), contextlib.closing(sqlite3.connect(part)) as target:
        source.backup(target)  # in one step: one moment of the database, however long it takes
        target.execute("PRAGMA journal_mode = DELETE")  # one file, until a server opens it
        (found,) = target.execute("PRAGMA integrity_check").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {found}")


def main(arguments: list[str]) -> int:
    """The command; 0 when the copy is safe, 1 when there is none, 2 for a wrong use."""
    if len(arguments) != 2:
        sys.stderr.write("usage: backup.py <database> <copy>\n")
        return 2
    try:
        back_up(Path(arguments[0]), Path(arguments[1]))
    except (sqlite3.Error, OSError) as error:
        sys.stderr.write(f"Error: no backup of {arguments[0]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
