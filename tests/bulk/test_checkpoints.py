"""Answers in a folder: found by a later run, whatever ended the earlier one."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path

import pytest

from svc.bulk.checkpoints import KEY_CHARS, Checkpoint


def key(number: int) -> str:
    return random.Random(number).randbytes(KEY_CHARS // 2).hex()


def written(folder: Path, *numbers: int) -> None:
    checkpoint = Checkpoint(folder)
    for number in numbers:
        checkpoint.keep(key(number), {"n": number, "text": "ä\n"})
    checkpoint.close()


def test_answers_of_several_processes_are_found_by_the_next_one(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "checkpoint"
    written(folder, *range(500))
    written(folder, *range(500, 900))
    keys = [key(number) for number in range(1_000)]
    found = Checkpoint(folder).find(keys)
    assert found == {key(number): {"n": number, "text": "ä\n"} for number in range(900)}


def test_an_empty_folder_has_no_answers_and_stays_empty(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.find([key(1)]) == {}
    checkpoint.close()
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_was_cut_short_counts_for_nothing(tmp_path: Path) -> None:
    written(tmp_path, 1, 2)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        found = Checkpoint(tmp_path).find([key(1), key(2)])
        assert set(found) <= {key(1), key(2)}
        assert all(found[key(number)]["n"] == number for number in (1, 2) if key(number) in found)
    assert len(found) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"-" + b"1" * 31 + b" {}\n",
        b"-1\n",
        b"0x" + b"1" * 30 + b" {}\n",
        b" " * 40 + b"\n",
        b"\xff" * 40 + b"\n",
        b"{} 5\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda line: repr(line[:20]),
)
def test_lines_of_something_else_count_for_nothing(tmp_path: Path, line: bytes) -> None:
    written(tmp_path, 1)
    other = tmp_path / "answers-0.jsonl"
    deep = f"{key(3)} ".encode() + b'{"a":' * 100_000 + b"}" * 100_000 + b"\n"
    other.write_bytes(line + f"{key(2)} 5\n".encode() + deep + line)
    found = Checkpoint(tmp_path).find([key(number) for number in (1, 2, 3)])
    assert set(found) == {key(1)}


def test_a_damaged_line_does_not_hide_a_whole_one_of_the_same_row(tmp_path: Path) -> None:
    (tmp_path / "answers-0.jsonl").write_text(f'{key(1)} {{"n":')
    written(tmp_path, 1)
    assert set(Checkpoint(tmp_path).find([key(1)])) == {key(1)}


def test_links_out_of_the_folder_are_not_read(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    written(other, 1)
    (path,) = other.iterdir()
    folder.mkdir()
    (folder / "answers-0.jsonl").symlink_to(path)
    (folder / "answers-1.jsonl").mkdir()
    os.mkfifo(folder / "answers-2.jsonl")
    assert Checkpoint(folder).find([key(1)]) == {}


def test_keys_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    written(tmp_path, 1)
    other = key(1)[: KEY_CHARS // 2] + "0" * (KEY_CHARS // 2)
    assert Checkpoint(tmp_path).find([other]) == {}


def test_only_the_owner_reads_what_is_kept(tmp_path: Path) -> None:
    written(tmp_path / "new", 1)
    (path,) = (tmp_path / "new").iterdir()
    assert [one.stat().st_mode & 0o777 for one in (path.parent, path)] == [0o700, 0o600]


def test_a_disk_that_takes_nothing_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Checkpoint(tmp_path / "folder")
    (tmp_path / "folder").rmdir()
    with caplog.at_level(logging.ERROR):
        checkpoint.keep(key(1), {})
        checkpoint.keep(key(2), {})
    assert [record.message for record in caplog.records] == [
        "the checkpoint takes no more answers: no such file or directory"
    ]
