"""Whole files: JSON is read from one, and text is written either completely or not at all.

A file without a name. And folders: one that only its owner may use, and names in one that last.
"""

from __future__ import annotations

import codecs
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from svc import jsontext

# The mode of a folder that its owner alone may use.
_OWNERS_ALONE = 0o700

# The mode of a new file, as far as the umask allows.
_ANYBODY = 0o666


def nameless() -> int:
    """The descriptor of a new, empty file that has no name, so that no other program can open it.

    Raises `OSError`.
    """
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor


def read_json(path: Path) -> Any:
    """The JSON value of a file, with or without a byte order mark.

    Raises `OSError`, or `InvalidJson` that says what is wrong with "the file".
    """
    return jsontext.loads(path.read_bytes().removeprefix(codecs.BOM_UTF8), "the file")


def check_writable(path: Path) -> None:
    """Check whether `replace` can write there, without changing it. Raises `OSError`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not _special(path):
        new_beside(_target(path)).unlink()
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def replace(path: Path, text: str) -> None:
    """Write `text` in place of the file, which is unchanged after a failure. Raises `OSError`.

    A symbolic link stays one, and the file it leads to keeps its mode. A device or a pipe, which is
    not a regular file, is written to directly.
    """
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """As `replace`, with what the block writes to the file that it gets. Raises `OSError`."""
    if _special(path):
        with path.open("wb") as file:
            yield file
        return
    target = _target(path)
    new = new_beside(target)
    try:
        with new.open("wb") as file:
            yield file
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def make_private(folder: Path, owner: int | None = None) -> None:
    """Make a folder that nobody but its owner may use; one that is there becomes like that.

    Raises `OSError`, also where there is a symbolic link or a folder of somebody else than this
    process's user or the user `owner`.
    """
    folder.mkdir(mode=_OWNERS_ALONE, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(opened)
        if found.st_uid not in (os.geteuid(), owner):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        if stat.S_IMODE(found.st_mode) != _OWNERS_ALONE:
            os.fchmod(opened, _OWNERS_ALONE)
    finally:
        os.close(opened)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, also where the machine loses power. Raises `OSError`."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _special(path: Path) -> bool:
    """Whether the path exists and is not a regular file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def new_beside(target: Path) -> Path:
    """A new empty file in the same folder, under an unused name, for no more than may use `target`.

    Raises `OSError`.
    """
    new = target.with_name(f".{secrets.token_hex(8)}.new")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _ANYBODY
    new.touch(mode | stat.S_IWUSR, exist_ok=False)
    return new
