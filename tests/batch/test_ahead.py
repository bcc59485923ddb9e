"""Results that wait for those of earlier lines are found by the next run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.batch import beside
from svc.batch.ahead import Ahead, ahead_of
from svc.batch.inputs import InputLine
from svc.batch.run import Kind, Result
from svc.errors import SettingsError
from tests.full_disk import largest_file


@pytest.fixture
def path(tmp_path: Path) -> str:
    """An output that a run has begun."""
    output = tmp_path / "out.jsonl"
    output.touch()
    output.with_name("out.jsonl.run.json").write_text('{"model": "m"}\n')
    return str(output)


def result(number: int, cost_usd: float = 0.25) -> Result:
    return Result(Kind.ANSWERED, data(number), line=number, cost_usd=cost_usd)


def data(number: int) -> bytes:
    return b'{"line":%d,"answers":{}}\n' % number


def opened(path: str) -> Ahead:
    return ahead_of(path, lasts=True, retried=False)


def found(ahead: Ahead, *numbers: int) -> list[bytes]:
    """What is found of these lines; nothing where they are asked."""
    asked = Result(Kind.ANSWERED, b"")
    return [ahead.work(lambda _: asked, InputLine(number, b"{}")).data for number in numbers]


def kept(path: str, *numbers: int, last: int = 0) -> Path:
    """The file that a run leaves which has kept these and written up to the last line."""
    ahead = opened(path)
    for number in numbers:
        ahead.keep(result(number))
    ahead.end(last)
    return Path(path + ".ahead")


def test_what_a_run_has_kept_is_not_asked_again(path: str) -> None:
    kept(path, 5, 3)
    ahead = opened(path)
    assert found(ahead, 2, 3, 4, 5) == [b"", data(3), b"", data(5)]
    assert ahead.beyond(0) == (0, 0.0)


def test_it_outlasts_several_runs_that_are_ended(path: str) -> None:
    kept(path, 5)
    kept(path, 3)
    assert found(opened(path), 3, 4, 5) == [data(3), b"", data(5)]


def test_no_file_is_left_where_all_of_it_is_in_the_output(path: str) -> None:
    assert not kept(path, 5, 3, last=5).exists()
    assert not kept(path).exists()


def test_what_was_kept_and_is_in_the_output_now_is_forgotten(path: str) -> None:
    kept(path, 9)
    ahead = opened(path)
    ahead.keep(result(3))
    ahead.clear()
    ahead.keep(result(6))
    ahead.end(5)
    assert found(opened(path), 3, 6, 9) == [b"", data(6), data(9)]


def test_failures_are_not_kept(path: str) -> None:
    ahead = opened(path)
    ahead.keep(Result(Kind.FAILED, data(3), line=3))
    ahead.keep(Result(Kind.END, b""))
    ahead.end(0)
    assert not Path(path + ".ahead").exists()


def test_what_is_behind_the_last_line_is_counted_with_its_cost(path: str) -> None:
    for ahead in (opened(path), Ahead()):
        for number in (3, 4, 5):
            ahead.keep(result(number, number / 8))
        assert ahead.beyond(3) == (2, 9 / 8)


@pytest.mark.parametrize("torn", [b'{"line":7,"ans', b'{"line":7,\0\0}\n', b"7\n"])
def test_a_line_that_was_not_written_whole_is_cut_off(path: str, torn: bytes) -> None:
    with kept(path, 5).open("ab") as file:
        file.write(torn)
    kept(path, 6)
    assert found(opened(path), 5, 6, 7) == [data(5), data(6), b""]


def test_a_beginning_that_was_not_written_whole_is_written_anew(path: str) -> None:
    file = kept(path, 5)
    file.write_bytes(file.read_bytes()[:20])
    kept(path, 6)
    assert found(opened(path), 5, 6) == [b"", data(6)]


@pytest.mark.parametrize("content", [b"mine\n", b'{"ahead":"of another run"}\n', b"\0" * 200])
def test_another_file_of_that_name_is_refused_and_stays(path: str, content: bytes) -> None:
    file = Path(path + ".ahead")
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="does not hold results of this output"):
        opened(path)
    assert file.read_bytes() == content


def test_a_pipe_of_that_name_is_refused_and_not_waited_for(path: str) -> None:
    os.mkfifo(path + ".ahead")
    with pytest.raises(SettingsError, match="does not hold results of this output"):
        opened(path)
    beside.forget(path)
    assert os.path.exists(path + ".ahead")


def test_a_link_of_that_name_is_not_followed(path: str, tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", path + ".ahead")
    kept(path, 5)
    assert not (tmp_path / "elsewhere").exists()


def test_lines_that_are_asked_again_have_a_file_of_their_own(path: str) -> None:
    kept(path, 5)
    again = ahead_of(path, lasts=True, retried=True)
    assert found(again, 5) == [b""]
    again.keep(result(2))
    again.end(0)
    assert Path(path + ".retried.ahead").exists()


def test_only_its_owner_reads_it(path: str) -> None:
    assert kept(path, 5).stat().st_mode & 0o777 == 0o600


def test_what_has_no_room_on_the_disk_is_not_kept_and_spoils_nothing(path: str) -> None:
    ahead = opened(path)
    ahead.keep(result(3))
    size = Path(path + ".ahead").stat().st_size
    with largest_file(size + 5):
        ahead.keep(result(4))
    ahead.keep(result(5))
    assert ahead.beyond(0) == (2, 0.5)
    ahead.end(0)
    assert found(opened(path), 3, 4, 5) == [data(3), b"", data(5)]
