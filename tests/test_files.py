from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from svc.errors import InvalidJson
from svc.files import check_writable, make_private, new_beside, read_json, replace, replacing


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o640)
    replace(path, "new ü\n")
    assert path.read_text("utf-8") == "new ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_as_it_was_when_what_replaces_it_is_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match="half"), replacing(path) as file:
        file.write(b"new")
        raise ValueError("half")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_mode_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    replace(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_else_is_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "a.json.new"
    own.write_text("mine")
    replace(tmp_path / "a.json", "new")
    assert own.read_text() == "mine"


def test_a_private_folder_is_its_owners_alone_also_where_it_was_there(tmp_path: Path) -> None:
    for name in ("new", "old"):
        folder = tmp_path / name
        if name == "old":
            folder.mkdir()
            folder.chmod(0o755)
        make_private(folder)
        make_private(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_private_folder_is_no_link_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(OSError, match=name):
            make_private(tmp_path / name)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_private_folder_is_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.chown(tmp_path / "folder", 12_345, -1)
    with pytest.raises(PermissionError):
        make_private(tmp_path / "folder")


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_one(tmp_path: Path, there: bool) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    if there:
        target.write_text("old")
    link.symlink_to("target")
    replace(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()), daemon=True)
    reader.start()
    check_writable(path)
    replace(path, "new")
    reader.join(10)
    assert read == ["new"] and path.is_fifo()


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (folder, tmp_path / "none" / "a", tmp_path / ("a" * 300)):
        with pytest.raises(OSError):
            check_writable(path)
        with pytest.raises(OSError):
            replace(path, "new")
    assert list(tmp_path.iterdir()) == [folder] and not list(folder.iterdir())


def test_finding_out_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    check_writable(path)
    assert not list(tmp_path.iterdir())
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_json_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + b'{"a": 1}\n')
        assert read_json(path) == {"a": 1}


def test_a_file_that_holds_no_json_is_called_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{")
    with pytest.raises(InvalidJson, match="the file is not JSON"):
        read_json(path)


def test_what_is_written_beside_a_file_is_for_no_more_people(tmp_path: Path) -> None:
    target = tmp_path / "results.jsonl"
    target.touch(0o600)
    assert new_beside(target).stat().st_mode & 0o777 == 0o600
