"""Input files of one JSON value a line, read in bounded memory."""

from __future__ import annotations

import codecs
import hashlib
import io
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from svc import jsontext
from svc.errors import InvalidJson, SettingsError, TooLarge
from svc.phrases import reason

# The name of standard input or output on the command line.
STANDARD = "-"
# Twice the length of the largest state with every character escaped.
LINE_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line of an input, numbered from 1; `data` is None where it has over `LINE_BYTES`."""

    number: int
    data: bytes | None

    def parse(self) -> Any:
        """The JSON value of the line. Raises `InvalidJson` or `TooLarge`."""
        if self.data is None:
            raise TooLarge(f"the line has over {LINE_BYTES:,} bytes")
        if not self.data.strip():
            raise InvalidJson("the line is empty")
        return jsontext.loads(self.data, "the line", one_line=True)


@dataclass(frozen=True, slots=True)
class Input:
    """An opened input: its lines, their number where it is known, and a digest.

    The digest is of a whole regular file. Where an input can be read only once, it is of the first
    line.
    """

    lines: Iterator[InputLine]
    total: int | None
    sha256: str
    stream: io.BufferedReader = field(repr=False)

    @property
    def status(self) -> os.stat_result:
        """The status of the file, which identifies it whatever its name is."""
        return os.fstat(self.stream.fileno())

    def close(self) -> None:
        """Close the file below its buffer, whose lock a thread that waits for input may hold."""
        self.stream.raw.close()


def open_input(path: str) -> Input:
    """Open a file, or standard input. Raises `SettingsError` when it cannot be read."""
    try:
        stream = open(0, "rb", closefd=False) if path == STANDARD else open(path, "rb")  # noqa: SIM115
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0:
            total, digest = _survey(stream)
            return Input(read_lines(stream), total, digest, stream)
        lines = read_lines(stream)
        first = list(itertools.islice(lines, 1))
        digest = hashlib.sha256(first[0].data or b"" if first else b"").hexdigest()
        return Input(itertools.chain(first, lines), None, digest, stream)
    except OSError as error:
        raise SettingsError(f"input {path!r}: {reason(error)}") from None


def read_lines(stream: BinaryIO) -> Iterator[InputLine]:
    """Every line without its line break, and without a byte order mark before the first."""
    for number in itertools.count(1):
        data = stream.readline(LINE_BYTES + 1)
        if not data:
            return
        if len(data) > LINE_BYTES and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = stream.readline(_CHUNK_BYTES)
            yield InputLine(number, None)
            continue
        if number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        yield InputLine(number, data.rstrip(b"\r\n"))


def _survey(stream: BinaryIO) -> tuple[int, str]:
    """The number of lines and the digest of a whole file, which is then at its start again."""
    lines, digest, last = 0, hashlib.sha256(), b"\n"
    while chunk := stream.read(_CHUNK_BYTES):
        lines += chunk.count(b"\n")
        digest.update(chunk)
        last = chunk[-1:]
    stream.seek(0)
    return lines + (last != b"\n"), digest.hexdigest()
