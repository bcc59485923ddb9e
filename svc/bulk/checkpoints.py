"""Answers of rows in a folder, so that a run that is started again asks only what is missing."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import threading
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from svc.phrases import reason

# Hexadecimal digits of a row's key, with which its line begins.
KEY_CHARS = 32

# Of a row's key, as many as fit into 64 bits.
_INDEXED = 16

# The low bits of a place are the offset in its file, the others the number of the file.
_OFFSET_BITS = 40

# A whole line. Others are those of a process that was killed while it wrote, or nobody's.
_LINE = re.compile(rb"[0-9a-f]{%d} \{.*\}\n" % KEY_CHARS)

log = logging.getLogger(__name__)


class Checkpoint:
    """The answers of rows by their keys: those that were in the folder, and those of this process.

    Every process writes a file of its own, a line a row, and reads the files of all others once,
    when it starts. It keeps 16 bytes a row in memory. A line that was cut short by the end of its
    process counts for nothing, nor does what else may stand in the folder.
    """

    def __init__(self, folder: Path) -> None:
        """Read which rows are there; the folder is made. Raises `OSError`."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = sorted(folder.glob("answers-*.jsonl"))
        self._files = [path for path in found if path.is_file() and not path.is_symlink()]
        self._own = folder / f"answers-{secrets.token_hex(8)}.jsonl"
        self._descriptor: int | None = None
        self._broken = False
        self._lock = threading.Lock()
        self._keys, self._places = _indexed(self._files)

    def find(self, keys: Sequence[str]) -> Mapping[str, Any]:
        """The answers of those rows that were there at the start."""
        if not len(self._keys):
            return {}
        wanted = np.array([int(key[:_INDEXED], 16) for key in keys], dtype=np.uint64)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        places = self._places[at[self._keys[at] == wanted]]
        found = dict(self._lines(np.sort(places).tolist()))
        return {key: found[key] for key in keys if key in found}

    def keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Write down the answer of a row. A disk that takes no more is logged, and not an error."""
        line = f"{key} {json.dumps(answer)}\n".encode()
        with self._lock:
            if self._broken:
                return
            try:
                self._write(line)
            except OSError as error:
                # What stands behind half a line could not be read again.
                self._broken = True
                log.error("the checkpoint takes no more answers: %s", reason(error))

    def close(self) -> None:
        """Close the file of this process."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
            self._descriptor = os.open(self._own, flags, 0o600)
        while line:
            line = line[os.write(self._descriptor, line) :]

    def _lines(self, places: Sequence[int]) -> Iterator[tuple[str, Any]]:
        """Keys and answers at some places, which are sorted."""
        with contextlib.ExitStack() as stack:
            number, file = -1, None
            for place in places:
                if place >> _OFFSET_BITS != number or file is None:
                    stack.close()
                    number = place >> _OFFSET_BITS
                    file = stack.enter_context(self._files[number].open("rb"))
                file.seek(place & ((1 << _OFFSET_BITS) - 1))
                if (parsed := _parsed(file.readline())) is not None:
                    yield parsed


def _indexed(files: Sequence[Path]) -> tuple[Any, Any]:
    """The first half of each row's key, sorted, and the place of its line."""
    keys, places = array("Q"), array("Q")
    for number, path in enumerate(files):
        offset = 0
        with path.open("rb") as file:
            for line in file:
                if _LINE.fullmatch(line):
                    keys.append(int(line[:_INDEXED], 16))
                    places.append(number << _OFFSET_BITS | offset)
                offset += len(line)
    order = np.argsort(np.frombuffer(keys, np.uint64), kind="stable")
    return np.frombuffer(keys, np.uint64)[order], np.frombuffer(places, np.uint64)[order]


def _parsed(line: bytes) -> tuple[str, Any] | None:
    """Key and answer of a line, which is an object; None for a line that is damaged."""
    if not _LINE.fullmatch(line):
        return None
    try:
        return line[:KEY_CHARS].decode(), json.loads(line[KEY_CHARS:])
    except (ValueError, RecursionError):
        return None
