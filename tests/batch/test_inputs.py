from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from svc.batch.inputs import LINE_BYTES, InputLine, open_input, read_lines
from svc.errors import InvalidJson, SettingsError, TooLarge


def values(data: bytes) -> list[object]:
    return [line.parse() for line in read_lines(io.BytesIO(data))]


def test_every_line_is_a_value_whatever_ends_it() -> None:
    assert values(b'"a"\r\n{"b": 1}\n[2]') == ["a", {"b": 1}, [2]]


def test_lines_are_numbered_from_1_and_empty_ones_count() -> None:
    lines = list(read_lines(io.BytesIO(b"1\n\n3\n")))
    assert lines == [InputLine(1, b"1"), InputLine(2, b""), InputLine(3, b"3")]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert values(b'\xef\xbb\xbf"a"\n"b"\n') == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the line is empty"),
        (b"nonsense", "the line is not JSON: Expecting value at column 1"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'"\xff"', "the line is not UTF-8"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_json_says_what_is_wrong(data: bytes, words: str) -> None:
    with pytest.raises(InvalidJson, match=words):
        InputLine(1, data).parse()


def test_a_line_without_end_is_not_kept_and_the_next_one_is_read() -> None:
    long, short = read_lines(io.BytesIO(b"1" * (3 * LINE_BYTES) + b"\n2"))
    assert (long.data, short) == (None, InputLine(2, b"2"))
    with pytest.raises(TooLarge, match="over 4,194,304 bytes"):
        long.parse()


def test_a_line_of_just_the_longest_length_is_read() -> None:
    first, second = read_lines(io.BytesIO(b"1" * LINE_BYTES + b"\n2\n"))
    assert len(first.data or b"") == LINE_BYTES and second.data == b"2"


def test_a_file_tells_its_number_of_lines_and_another_digest_when_it_changes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"1\n2\n3")
    first = open_input(str(path))
    first.close()
    path.write_bytes(b"1\n2\n4\n")
    second = open_input(str(path))
    second.close()
    assert (first.total, second.total) == (3, 3)
    assert first.sha256 != second.sha256


def test_a_pipe_is_read_once_and_told_by_its_first_line(tmp_path: Path) -> None:
    digests = set()
    for data in (b"1\n2\n", b"1\n3\n"):
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        source = open_input(f"/dev/fd/{reading}")
        os.close(reading)
        assert source.total is None
        assert len(list(source.lines)) == 2
        digests.add(source.sha256)
        source.close()
    assert len(digests) == 1


@pytest.mark.parametrize(("name", "words"), [("none", "no such file"), ("", "is a directory")])
def test_an_input_that_cannot_be_read_is_named(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        open_input(str(tmp_path / name))
