"""Texts in any encoding as lines, and comma-separated values as rows, in bounded memory."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence

from svc.errors import SettingsError
from svc.phrases import listed, quoted

# The longest line and the longest cell in characters, over the longest state of a decision.
CHARS = 1_000_000
# The longest row in characters, which may go on over any number of lines.
ROW_CHARS = 4 * CHARS
_CHUNK_BYTES = 256 * 1024
# A carriage return at the end of a chunk may have its line feed in the next one.
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
# What `csv` says of a cell that never ends.
_ENDLESS = ("unexpected end of data", "field larger than field limit")


class BrokenInput(SettingsError):
    """The input cannot be read on from some line."""


def check_encoding(encoding: str) -> None:
    """Raise `SettingsError` for what is no encoding of texts."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise SettingsError(
            f"--encoding is {encoding[:100]!r}; allowed: an encoding that Python knows, such as "
            "utf-8, cp1252, latin-1, utf-16 or shift_jis"
        ) from None


def lines_of(
    stream: io.BufferedReader, encoding: str, name: str, advice: str = ""
) -> Iterator[str]:
    """The lines of a text with their line breaks, and without a byte order mark.

    Raises `BrokenInput`, which calls the text `name`, with `advice` where the encoding is wrong.
    """
    utf_8 = codecs.lookup(encoding).name == "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8-sig" if utf_8 else encoding)()
    number, held, data = 0, "", b"\n"
    while data:
        data = stream.read1(_CHUNK_BYTES)
        try:
            held += decoder.decode(data, final=not data)
        except UnicodeError as error:
            bad = number + 1 + held.count("\n") + _breaks_before(error)
            what = f"is not {encoding.upper()}{advice}"
            raise BrokenInput(f"{name}, line {bad:,}: {what}") from None
        end = 0
        for match in _LINE_END.finditer(held):
            number, start, end = number + 1, end, match.end()
            yield _checked(held[start:end], name, number, advice)
        held = _checked(held[end:], name, number + 1, advice)
    if held:
        yield held


def _breaks_before(error: UnicodeError) -> int:
    """Line breaks before the place of an error; UTF-16 without its mark is one without a place."""
    if isinstance(error, UnicodeDecodeError):
        return error.object[: error.start].count(b"\n")
    return 0


def _checked(line: str, name: str, number: int, advice: str) -> str:
    if "\0" in line:
        what = f"has a NUL byte, which no text has in this encoding{advice}"
        raise BrokenInput(f"{name}, line {number:,}: {what}")
    if len(line) > CHARS:
        raise BrokenInput(f"{name}, line {number:,}: has over {CHARS:,} characters")
    return line


class Rows:
    """The rows of comma-separated values (RFC 4180), each with the number of its first line.

    The first row names the `columns` and is none of them; empty lines are left out.
    """

    def __init__(self, lines: Iterator[str], delimiters: Sequence[str], name: str) -> None:
        """The one of `delimiters` is taken that the first line has most; errors name `name`.

        Raises `BrokenInput`.
        """
        self._name = name
        # The first line of the row that is read, and its characters so far.
        self._start, self._chars = 1, 0
        first = next(lines, "")
        # The quotes hold no delimiters that count.
        head = "".join(first.split('"')[::2])
        csv.field_size_limit(CHARS)
        self._reader = csv.reader(
            self._counted(itertools.chain([first], lines)),
            delimiter=max(delimiters, key=head.count),
            strict=True,
        )
        _, names = next(iter(self), (1, []))
        self.columns = [one.strip() for one in names]
        self._check_columns()

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Raises `BrokenInput`."""
        while True:
            self._start, self._chars = self._reader.line_num + 1, 0
            try:
                cells = next(self._reader, None)
            except csv.Error as error:
                raise BrokenInput(
                    f"{self._name}, line {self._start:,}: {_problem(error)}"
                ) from None
            if cells is None:
                return
            if cells:
                yield self._start, cells

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self._chars += len(line)
            if self._chars > ROW_CHARS:
                raise BrokenInput(
                    f"{self._name}, line {self._start:,}: this row has over {ROW_CHARS:,} "
                    "characters; look for a quote that is never closed"
                )
            yield line

    def needs(self, column: str, option: str) -> None:
        """Raise `BrokenInput` where there is no such column, which `option` named."""
        if column not in self.columns:
            raise BrokenInput(
                f"{option} {column[:100]!r}: the columns of {self._name} are {listed(self.columns)}"
            )

    def _check_columns(self) -> None:
        if not any(self.columns):
            raise BrokenInput(
                f"{self._name}: is empty; the first line must name the columns, each once"
            )
        known = set[str]()
        for column in self.columns:
            if column in known:
                raise BrokenInput(
                    f"{self._name}, line 1: names the column {quoted(column)} twice; the first "
                    "line must name the columns, each once"
                )
            known.add(column)


def _problem(error: csv.Error) -> str:
    if str(error).startswith(_ENDLESS):
        return "a cell of this row begins with a quote that is never closed"
    return f"this row is not CSV: {error}"
