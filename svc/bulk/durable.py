"""Files that are there whole, also after a loss of power, or not at all; and their folders."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from svc.errors import Damaged
from svc.files import make_private, sync_folder

# What is raised by reading what was never written so.
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


# A file that is being written ends in this, until it is whole.
PART = ".part"


def own_folder(folder: Path) -> None:
    """Make a folder of a run, for its owner alone. Raises `OSError` where it is another's."""
    make_private(folder)


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Raise `Damaged` where what is read within the block was never written so."""
    try:
        yield
    except _UNREADABLE:
        raise Damaged(f"{str(path)!r} is damaged; --restart starts again") from None


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which is at `path` once the block has ended without an error."""
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except Exception:
        # Where the disk is full, others need its room.
        part.unlink(missing_ok=True)
        raise
    part.replace(path)
    sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value in place of the file."""
    with whole(path) as file:
        file.write(json.dumps(value, indent=1).encode())
