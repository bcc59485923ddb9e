from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

from tests.store.processes import child

TURNS = "300"


def hears(process: subprocess.Popen[str], word: str) -> bool:
    assert process.stdout is not None
    return process.stdout.readline().strip() == word


def end_turn(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_turn_is_had_by_one_process_at_a_time(path: Path) -> None:
    had = Path(f"{path}-had")
    with child("hold_turn", path) as holder:
        assert hears(holder, "held")
        with child("have_turns", path, "o", "1") as other:
            assert hears(other, "ready")
            assert not had.exists()
            end_turn(holder)
            assert hears(other, "done")
    assert had.read_text() == "o"


def test_a_process_that_is_killed_holds_nobody_up(path: Path) -> None:
    with child("hold_turn", path) as holder:
        assert hears(holder, "held")
        with child("have_turns", path, "o", "1") as other:
            assert hears(other, "ready")
            holder.kill()
            assert hears(other, "done")


def test_who_waits_has_the_turn_before_who_has_just_had_it(path: Path) -> None:
    with (
        child("hold_turn", path) as holder,
        child("have_turns", path, "a", TURNS) as first,
        child("have_turns", path, "b", TURNS) as second,
    ):
        assert hears(holder, "held")
        assert all(hears(process, "ready") for process in (first, second))
        end_turn(holder)
        assert all(hears(process, "done") for process in (first, second))
    had = Path(f"{path}-had").read_text()
    assert (had.count("a"), had.count("b")) == (int(TURNS), int(TURNS))
    # Without the gate it is a tenth of that: the one that has just had it wins nearly always.
    assert sum(one != other for one, other in pairwise(had)) > int(TURNS) / 3
