"""Input files of one record a line or a row, read in bounded memory."""

from __future__ import annotations

import codecs
import hashlib
import io
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from svc import jsontext
from svc.batch.forms import DELIMITERS, JSONL, TEXT, UTF_8, Form, Record
from svc.batch.texts import BrokenInput, Rows, lines_of
from svc.errors import InvalidJson, InvalidRequest, SettingsError, TooLarge
from svc.phrases import listed, reason

# The name of standard input or output on the command line.
STANDARD = "-"
# Twice the length of the largest state with every character escaped.
LINE_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_ADVICE = "; --encoding names another, such as cp1252 or utf-16-le"
# A JSON value a line, and all of it.
PLAIN = Form()


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line or row of an input as JSON, numbered from 1.

    `data` is None where it has over `LINE_BYTES`. `error` says what is wrong with a row.
    """

    number: int
    data: bytes | None
    form: Form = PLAIN
    error: str = ""

    def read(self) -> Record:
        """What the line holds. Raises `InvalidJson`, `InvalidRequest` or `TooLarge`."""
        if self.error:
            raise InvalidRequest(self.error)
        return self.form.record(self.parse())

    def row_id(self, record: Record) -> str:
        """The caller's own id of what the line holds, or the line's number."""
        return str(self.number) if record.ref is None else record.ref

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


def open_input(path: str, form: Form = PLAIN) -> Input:
    """Open a file, or standard input. Raises `SettingsError` when it cannot be read."""
    try:
        stream = open(0, "rb", closefd=False) if path == STANDARD else open(path, "rb")  # noqa: SIM115
        try:
            return _opened(stream, path, form)
        except BaseException:
            stream.raw.close()
            raise
    except OSError as error:
        raise SettingsError(f"input {path!r}: {reason(error)}") from None


def _opened(stream: io.BufferedReader, path: str, form: Form) -> Input:
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0:
        total, digest = _survey(stream)
        if form.format != JSONL or form.encoding != UTF_8:
            total = sum(1 for _ in _lines(stream, form, path))
            stream.seek(0)
        return Input(_lines(stream, form, path), total, digest, stream)
    lines = _lines(stream, form, path)
    first = list(itertools.islice(lines, 1))
    digest = hashlib.sha256(first[0].data or b"" if first else b"").hexdigest()
    return Input(itertools.chain(first, lines), None, digest, stream)


def _lines(stream: io.BufferedReader, form: Form, path: str) -> Iterator[InputLine]:
    """The lines or rows of an input. Raises `BrokenInput`."""
    name = "standard input" if path == STANDARD else f"input {path!r}"
    if form.tabular:
        return _read_rows(stream, form, name)
    if form.format == JSONL and form.encoding == UTF_8:
        lines = read_lines(stream)
        return lines if form == PLAIN else (replace(line, form=form) for line in lines)
    return _read_texts(stream, form, name)


def _read_texts(stream: io.BufferedReader, form: Form, name: str) -> Iterator[InputLine]:
    for number, line in enumerate(lines_of(stream, form.encoding, name, _ADVICE), 1):
        text = line.rstrip("\r\n")
        if form.format == TEXT:
            error = "" if text.strip() else "the line is empty"
            yield InputLine(number, _json(text), form, error)
        else:
            yield InputLine(number, text.encode("utf-8", "replace"), form)


def _read_rows(stream: io.BufferedReader, form: Form, name: str) -> Iterator[InputLine]:
    lines = lines_of(stream, form.encoding, name, _ADVICE)
    rows = Rows(lines, DELIMITERS[form.format], name)
    for column in form.columns:
        rows.needs(column, "--column")
    if form.ref is not None:
        rows.needs(form.ref, "--ref-column")
    if form.labels and not set(form.labels) & set(rows.columns):
        raise BrokenInput(
            f"{name}: has no column of labels; a label stands in the column that is called like "
            f"its question, one of {listed(form.labels)}"
        )
    wide = len(rows.columns)
    for number, (start, cells) in enumerate(rows, 1):
        if len(cells) == wide:
            yield InputLine(number, _json(dict(zip(rows.columns, cells, strict=True))), form)
        else:
            error = f"line {start:,} of the file has {len(cells)} cells, the first line {wide}"
            yield InputLine(number, b"", form, error)


def _json(value: Any) -> bytes:
    return jsontext.dumps(value).encode("utf-8", "replace")


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
