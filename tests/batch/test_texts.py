from __future__ import annotations

import io
import tracemalloc

import pytest

from svc.batch import BrokenInput, Rows, check_encoding, lines_of
from svc.batch.texts import CHARS
from svc.errors import SettingsError


class Slow(io.BytesIO):
    """A stream that gives a byte at a time, so that every sequence is cut somewhere."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(1)


def lines(data: bytes, encoding: str = "utf-8") -> list[str]:
    whole = list(lines_of(io.BufferedReader(io.BytesIO(data)), encoding, "f"))  # type: ignore[arg-type]
    assert list(lines_of(Slow(data), encoding, "f")) == whole  # type: ignore[arg-type]
    return whole


def rows(text: str) -> Rows:
    stream = io.BufferedReader(io.BytesIO(text.encode()))  # type: ignore[arg-type]
    return Rows(lines_of(stream, "utf-8", "'t.csv'"), (",", ";", "\t"), "'t.csv'")


def test_lines_keep_their_ends_whichever_they_are() -> None:
    assert lines(b"a\r\nb\nc\rd\r\n\r\ne") == ["a\r\n", "b\n", "c\r", "d\r\n", "\r\n", "e"]
    assert lines(b"") == []
    assert lines(b"a\r") == ["a\r"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig", "cp1252", "UTF8"])
def test_a_text_is_read_in_its_encoding_without_a_byte_order_mark(encoding: str) -> None:
    assert lines("é\nü\n".encode(encoding), encoding) == ["é\n", "ü\n"]
    assert lines(b"\xef\xbb\xbfa\n") == ["a\n"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\nb\n\xff\n", "f, line 3: is not UTF-8"),
        (b"a\n\xc3", "f, line 2: is not UTF-8"),
        ("a\nb".encode("utf-16-le"), "f, line 1: has a NUL byte"),
        (b"a\n" + b"x" * (CHARS + 1), "f, line 2: has over 1,000,000 characters"),
    ],
)
def test_what_is_no_such_text_names_the_line(data: bytes, words: str) -> None:
    with pytest.raises(BrokenInput, match=words):
        list(lines_of(io.BufferedReader(io.BytesIO(data)), "utf-8", "f"))  # type: ignore[arg-type]


def test_utf_16_without_its_byte_order_mark_is_refused() -> None:
    with pytest.raises(BrokenInput, match="f, line 1: is not UTF-16"):
        lines("hi\n".encode("utf-16-le"), "utf-16")


@pytest.mark.parametrize("encoding", ["nonsense", "base64", "a\0b"])
def test_what_is_no_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(SettingsError, match="allowed: an encoding that Python knows"):
        check_encoding(encoding)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_rows_have_the_delimiter_of_the_first_line_and_the_number_of_their_first(mark: str) -> None:
    table = rows('"a,;b"{0} c \n1{0}"x\ny ""z"""\n\n2{0}3\n'.replace("{0}", mark))
    assert table.columns == ["a,;b", "c"]
    assert list(table) == [(2, ["1", 'x\ny "z"']), (5, ["2", "3"])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'t.csv': is empty; the first line must name the columns"),
        ("\n\n", "'t.csv': is empty"),
        ("a,b,a\n", "'t.csv', line 1: names the column \"a\" twice"),
        ('a,b\n1,2\n3,"x\ny\n', "'t.csv', line 3: a cell of this row begins with a quote"),
        ('a,b\n1,"2"3\n', "'t.csv', line 2: this row is not CSV"),
        ('a\n"' + "x" * 900_000 + "\n" + "x" * 900_000, "line 2: a cell of this row begins with"),
    ],
)
def test_what_is_no_table_names_the_file_and_the_line(text: str, words: str) -> None:
    with pytest.raises(BrokenInput, match=words):
        list(rows(text))


def test_a_row_that_goes_on_over_all_lines_does_not_fill_the_memory() -> None:
    text = 'a,b\n1,"' + '\n","' * 2_000_000
    with pytest.raises(BrokenInput, match="line 2: this row has over 4,000,000 characters"):
        list(rows(text))


def test_a_first_line_of_very_many_columns_is_read_at_once() -> None:
    names = [f"c{number}" for number in range(100_000)]
    assert rows(",".join(names) + "\n").columns == names


def test_a_quote_that_is_never_closed_does_not_fill_the_memory() -> None:
    text = 'a,b\n1,"' + "all the rest of a long file\n" * 400_000
    tracemalloc.start()
    try:
        with pytest.raises(BrokenInput, match="line 2: a cell of this row begins with a quote"):
            list(rows(text))
        # The file itself has 11 million bytes.
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
