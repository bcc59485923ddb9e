from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

from svc.batch.outputs import open_output, open_rows, run_of
from svc.errors import SettingsError

RUN = {"questions": "q", "input": "i", "model": ["a", "b"], "mode": "auto"}


def written(path: Path, *lines: bytes) -> None:
    output = open_output(str(path), RUN, restart=False)
    for line in lines:
        output.write(line)
    output.close()


def test_a_terminal_shows_what_it_would_obey_and_a_file_has_it_as_it_is(path: Path) -> None:
    line = '{"line":1,"id":"\x9b31m\u202eé"}\n'
    ours, theirs = pty.openpty()
    output = open_output(os.ttyname(theirs), RUN, restart=False)
    output.write(line.encode())
    output.close()
    shown = os.read(ours, 4_096).decode().replace("\r\n", "\n")
    assert shown == '{"line":1,"id":"\\u009b31m\\u202eé"}\n'
    assert json.loads(shown) == json.loads(line)
    written(path, line.encode())
    assert path.read_bytes() == line.encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_a_new_output_records_what_began_it(path: Path) -> None:
    written(path, b'{"line":1,"id":"a"}\n')
    assert json.loads(Path(f"{path}.run.json").read_text()) == RUN


def test_an_output_goes_on_behind_its_last_line_and_counts_its_errors(path: Path) -> None:
    written(path, b'{"line":1,"id":"a"}\n{"line":2,"error":{}}\n', b'{"line":3,"id":"b"}\n')
    output = open_output(str(path), RUN, restart=False)
    assert (output.lines, output.errors, output.resumable) == (3, 1, True)
    output.write(b'{"line":4,"id":"c"}\n')
    output.close()
    assert len(path.read_bytes().splitlines()) == 4


@pytest.mark.parametrize("half", [b"{", b'{"line":2,"id":"b"}', b"\0\0\0"])
def test_half_a_line_at_the_end_is_cut(path: Path, half: bytes) -> None:
    written(path, b'{"line":1,"id":"a"}\n', half)
    output = open_output(str(path), RUN, restart=False)
    output.close()
    assert output.lines == 1
    assert path.read_bytes() == b'{"line":1,"id":"a"}\n'


@pytest.mark.parametrize("name", RUN)
def test_an_output_that_something_else_began_is_refused_and_left_alone(
    path: Path, name: str
) -> None:
    written(path, b'{"line":1,"id":"a"}\n{')
    with pytest.raises(SettingsError, match=f"belongs to a run with a different {name}; --restart"):
        open_output(str(path), {**RUN, name: "other"}, restart=False)
    assert path.read_bytes() == b'{"line":1,"id":"a"}\n{'


def test_what_only_the_other_run_recorded_tells_them_apart_too(path: Path) -> None:
    other = open_output(str(path), {**RUN, "command": "shadow", "compare": "labels"}, False)
    other.write(b'{"line":1,"id":"a"}\n')
    other.close()
    with pytest.raises(SettingsError, match="a different command and compare; --restart"):
        open_output(str(path), {**RUN, "command": "map"}, restart=False)


def test_an_output_from_before_commands_were_recorded_is_gone_on_with(path: Path) -> None:
    written(path, b'{"line":1,"id":"a"}\n')
    output = open_output(str(path), {**RUN, "command": "map"}, restart=False)
    output.close()
    assert output.lines == 1


@pytest.mark.parametrize("restart", [True, False])
def test_what_is_read_from_is_not_written_whatever_its_name(path: Path, restart: bool) -> None:
    path.write_bytes(b"1\n")
    link = path.with_name("link")
    os.link(path, link)
    with pytest.raises(SettingsError, match="is also read from; name another file"):
        open_output(str(link), RUN, restart, [path.stat()])
    assert path.read_bytes() == b"1\n"


def test_a_device_that_is_read_from_can_be_written(path: Path) -> None:
    open_output("/dev/null", RUN, False, [os.stat("/dev/null")]).close()


def test_the_record_leaves_other_files_alone(path: Path) -> None:
    own = Path(f"{path}.run.json.new")
    own.write_text("mine")
    written(path)
    assert own.read_text() == "mine"


def test_a_link_in_the_place_of_the_record_leads_nowhere(path: Path) -> None:
    precious = path.with_name("precious")
    precious.write_text("mine")
    record = Path(f"{path}.run.json")
    record.symlink_to(precious)
    written(path, b'{"line":1,"id":"a"}\n')
    assert precious.read_text() == "mine" and not record.is_symlink()
    open_output(str(path), RUN, restart=False).close()


def test_a_run_may_have_words_that_are_no_text(path: Path) -> None:
    open_output(str(path), {**RUN, "columns": ["x\udcff"]}, restart=False).close()
    assert run_of(str(path))["columns"] == ["x?"]


def test_a_pipe_in_the_place_of_the_record_keeps_nobody_waiting(path: Path) -> None:
    path.write_bytes(b'{"line":1,"id":"a"}\n')
    os.mkfifo(f"{path}.run.json")
    with pytest.raises(SettingsError, match="there is no"):
        open_output(str(path), RUN, restart=False)
    assert run_of(str(path)) == {}


def test_restart_begins_anew(path: Path) -> None:
    written(path, b'{"line":1,"id":"a"}\n')
    output = open_output(str(path), {**RUN, "mode": "verbal"}, restart=True)
    output.close()
    assert (output.lines, path.read_bytes()) == (0, b"")
    assert json.loads(Path(f"{path}.run.json").read_text())["mode"] == "verbal"


def test_a_file_of_the_users_own_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("mine\n")
    with pytest.raises(SettingsError, match="exists already, and there is no 'out"):
        open_output(str(path), RUN, restart=False)
    assert path.read_text() == "mine\n"


@pytest.mark.parametrize("damaged", [b'{"line":2,"id":"b', b'{"line":2,"id":"\0\0\0"}'])
def test_lines_of_which_a_part_is_lost_are_refused(path: Path, damaged: bytes) -> None:
    written(path, b'{"line":1,"id":"a"}\n' + damaged + b"\n")
    with pytest.raises(SettingsError, match="line 2 is not the result of line 2"):
        open_output(str(path), RUN, restart=False)


def test_rows_of_which_a_part_is_lost_are_refused(path: Path) -> None:
    written(path, b'{"row":1,"id":"a","decision":{}}\n{"row":2,"id":"b","decision":{"id":\n')
    with pytest.raises(SettingsError, match="line 2 is not the result of a further row"):
        open_rows(str(path), RUN, restart=False)


def test_lines_that_are_not_ours_are_refused(path: Path) -> None:
    written(path, b'{"line":1,"id":"a"}\n{"line":3,"id":"b"}\n')
    with pytest.raises(SettingsError, match="line 2 is not the result of line 2"):
        open_output(str(path), RUN, restart=False)


@pytest.mark.parametrize("record", ["", "{", "[]", "null", "\x00"])
def test_a_record_that_cannot_be_read_is_refused(path: Path, record: str) -> None:
    written(path, b'{"line":1,"id":"a"}\n')
    Path(f"{path}.run.json").write_text(record)
    with pytest.raises(SettingsError, match="--restart starts again"):
        open_output(str(path), RUN, restart=False)


def test_two_at_once_do_not_write_the_same_file(path: Path) -> None:
    output = open_output(str(path), RUN, restart=False)
    with pytest.raises(SettingsError, match="another process is writing it"):
        open_output(str(path), RUN, restart=True)
    output.close()
    written(path, b'{"line":1,"id":"a"}\n')


def test_an_interruption_before_the_first_line_leaves_nothing_to_refuse(path: Path) -> None:
    written(path)
    output = open_output(str(path), {**RUN, "mode": "verbal"}, restart=False)
    output.close()
    assert json.loads(Path(f"{path}.run.json").read_text())["mode"] == "verbal"


def test_what_is_no_regular_file_is_written_and_not_gone_on_with(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    output = open_output(f"/dev/fd/{writing}", RUN, restart=False)
    output.write(b"x\n")
    output.close()
    os.close(writing)
    assert os.read(reading, 10) == b"x\n"
    os.close(reading)
    assert output.resumable is False


def test_a_full_disk_is_said_so() -> None:
    output = open_output("/dev/full", RUN, restart=False)
    with pytest.raises(SettingsError, match="'/dev/full': cannot write: no space left on device"):
        output.write(b"x\n")
    output.close()


def test_an_output_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file or directory"):
        open_output(str(tmp_path / "none" / "out.jsonl"), RUN, restart=False)
