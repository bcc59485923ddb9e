"""New results of lines that are asked again, over kills of the process that asks."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from svc.batch.outputs import open_output
from svc.batch.retries import open_retried
from svc.errors import SettingsError

RUN = {"questions": "q", "input": "i"}
ONE, TWO, THREE, FOUR = (b'{"line":%d,"id":"a"}\n' % line for line in range(1, 5))
BAD_TWO, BAD_FOUR = b'{"line":2,"error":{}}\n', b'{"line":4,"error":{}}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An output of four lines, two of which have an error."""
    path = tmp_path / "out.jsonl"
    begin(path)
    return path


@pytest.fixture
def kept(path: Path) -> Path:
    """Where new results are kept until they are in their places."""
    return path.with_name("out.jsonl.retried")


def begin(path: Path, restart: bool = False) -> None:
    output = open_output(str(path), RUN, restart)
    for line in (ONE, BAD_TWO, THREE, BAD_FOUR):
        output.write(line)
    output.close()


def retry(path: Path, *results: bytes) -> int:
    """Write these results; how many errors there were before."""
    output = open_retried(str(path), RUN)
    for result in results:
        output.write(result)
    output.close()
    return output.failures


def kill(path: Path, kept: Path, *results: bytes) -> None:
    """Leave the files as a process does that is killed once it has written these results."""
    before = path.read_bytes()
    output = open_retried(str(path), RUN)
    for result in results:
        output.write(result)
    left = kept.read_bytes()
    output.close()
    path.write_bytes(before)
    kept.write_bytes(left)


def test_new_results_take_the_places_of_errors_and_nothing_else_is_left(
    path: Path, kept: Path
) -> None:
    path.chmod(0o640)
    assert retry(path, TWO, FOUR) == 2
    assert path.read_bytes() == ONE + TWO + THREE + FOUR
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {one.name for one in path.parent.iterdir()} == {"out.jsonl", "out.jsonl.run.json"}


@pytest.mark.parametrize("half", [b"", b'{"line":4,"id":"a', b'{"line":4,"id":"\0\0"}\n', TWO])
def test_what_a_killed_process_has_kept_is_taken_up(path: Path, kept: Path, half: bytes) -> None:
    kill(path, kept, TWO, half)
    assert retry(path) == 1
    assert path.read_bytes() == ONE + TWO + THREE + BAD_FOUR
    assert not kept.exists()


def test_a_kill_before_the_first_result_leaves_nothing_in_the_way(path: Path, kept: Path) -> None:
    for whole in (True, False):
        kill(path, kept)
        if not whole:
            kept.write_bytes(kept.read_bytes()[:20])
        assert retry(path, TWO, FOUR) == 2
        begin(path, restart=True)


def test_what_is_kept_is_for_its_owner_alone(path: Path, kept: Path) -> None:
    output = open_retried(str(path), RUN)
    output.write(TWO)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert path.read_bytes() == ONE + BAD_TWO + THREE + BAD_FOUR
    output.close()


def test_a_sound_line_is_not_replaced(path: Path, kept: Path) -> None:
    kill(path, kept, b'{"line":1,"id":"b"}\n', TWO, b'{"line":5,"id":"b"}\n')
    assert retry(path) == 1
    assert path.read_bytes() == ONE + TWO + THREE + BAD_FOUR


@pytest.mark.parametrize("content", ["mine\n", '{"retried":"another run"}\n'])
def test_results_of_another_output_are_refused_and_left_alone(
    path: Path, kept: Path, content: str
) -> None:
    kept.write_text(content)
    with pytest.raises(SettingsError, match="retried' does not hold results of this output; move"):
        open_retried(str(path), RUN)
    assert kept.read_text() == content
    assert path.read_bytes() == ONE + BAD_TWO + THREE + BAD_FOUR


def test_an_output_that_begins_anew_has_nothing_of_the_one_before(path: Path, kept: Path) -> None:
    kill(path, kept, TWO)
    begin(path, restart=True)
    assert not kept.exists()
    kill(path, kept, TWO)
    path.unlink()
    begin(path)
    assert retry(path) == 2


def test_a_file_of_the_users_own_is_left_alone_by_an_output_that_begins_anew(
    path: Path, kept: Path
) -> None:
    kept.write_text("mine\n")
    begin(path, restart=True)
    assert kept.read_text() == "mine\n"


def test_while_one_asks_again_no_other_takes_its_results(path: Path, kept: Path) -> None:
    output = open_retried(str(path), RUN)
    output.write(TWO)
    with pytest.raises(SettingsError, match="another process is writing it"):
        open_retried(str(path), RUN)
    output.close()
    assert path.read_bytes() == ONE + TWO + THREE + BAD_FOUR


def test_results_that_find_no_place_on_the_disk_are_still_kept(path: Path, kept: Path) -> None:
    output = open_retried(str(path), RUN)
    output.write(TWO)
    blocked = path.with_name(".out.jsonl.retried.new")
    blocked.mkdir()
    with pytest.raises(SettingsError, match="cannot write"):
        output.close()
    blocked.rmdir()
    assert retry(path) == 1
    assert path.read_bytes() == ONE + TWO + THREE + BAD_FOUR
