"""Takes out of a book what tells of its rows; see `book.py`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def strip(folder: Path) -> None:
    """Delete the calls and the replies for good, but not what is known of batches at providers."""
    # Another process may be deleting all of it.
    with suppress(FileNotFoundError):
        for path in folder.glob("*/*"):
            if path.suffix not in (".json", ".round"):
                path.unlink(missing_ok=True)
