from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from svc.errors import SettingsError
from svc.evals.runs import Run, Saved, by_run, opened, plan_text, read
from svc.evals.scoring import Scored
from svc.evals.sets import EvalSet, load_set
from tests.evals.samples import LATE, rows, scored, write_set

RUN = Run({"cascade": ["a", "b"], "escalate_below": 0.9}, "auto", True, "svc-1.2.0")
RIGHT = scored("true", "true")


@pytest.fixture
def late(tmp_path: Path) -> EvalSet:
    write_set(tmp_path, "late", rows=rows(3))
    return load_set(str(tmp_path), "late")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.jsonl")


def save(path: str, late: EvalSet, *what: Scored, run: Run = RUN) -> None:
    with opened(path) as saved:
        for row, one in zip(late.rows, what, strict=False):
            saved.add(run, late, row, one)


def test_what_is_saved_is_found_again(path: str, late: EvalSet) -> None:
    save(path, late, RIGHT, scored("true", "false"))
    with opened(path) as saved:
        found = [saved.find(RUN, late, row) for row in late.rows]
    assert found == [RIGHT, scored("true", "false"), None]


def test_another_way_of_asking_is_asked_for_itself(path: str, late: EvalSet) -> None:
    save(path, late, RIGHT)
    other = [
        replace(RUN, model="a"),
        replace(RUN, model={"cascade": ["a", "b"], "escalate_below": 0.8}),
        replace(RUN, mode="verbal"),
        replace(RUN, debias=False),
        replace(RUN, config="svc-1.1.0"),
    ]
    with opened(path) as saved:
        assert [saved.find(run, late, late.rows[0]) for run in other] == [None] * 5


def test_another_wording_or_label_is_asked_again(path: str, late: EvalSet, tmp_path: Path) -> None:
    save(path, late, RIGHT, RIGHT)
    write_set(tmp_path, "late", rows=[rows(1, label=False)[0], *rows(3)[1:]])
    relabelled = load_set(str(tmp_path), "late")
    reworded = replace(late, question={**LATE, "instructions": "Late?"})
    with opened(path) as saved:
        assert [saved.find(RUN, relabelled, row) for row in relabelled.rows[:2]] == [None, RIGHT]
        assert saved.find(RUN, reworded, reworded.rows[0]) is None


def test_a_failed_row_is_asked_again_and_its_last_line_counts(path: str, late: EvalSet) -> None:
    save(path, late, Scored(error="model_error: no"))
    with opened(path) as saved:
        assert saved.find(RUN, late, late.rows[0]) is None
    save(path, late, RIGHT)
    assert [row.scored for row in read(path)] == [RIGHT]


def test_rows_of_an_older_wording_are_left_out(path: str, late: EvalSet) -> None:
    save(path, late, RIGHT, RIGHT, RIGHT)
    reworded = replace(late, question={**LATE, "instructions": "Late?"})
    save(path, reworded, scored("true", "false"))
    ((run, sets),) = by_run(read(path))
    assert run == RUN
    assert [(row.row, row.scored.agrees) for row in sets["late"]] == [(1, False)]


def test_every_way_of_asking_is_a_run_of_its_own(path: str, late: EvalSet) -> None:
    save(path, late, RIGHT)
    save(path, late, RIGHT, RIGHT, run=replace(RUN, debias=False))
    assert [(run.debias, len(sets["late"])) for run, sets in by_run(read(path))] == [
        (True, 1),
        (False, 2),
    ]


def test_half_a_line_at_the_end_is_cut(path: str, late: EvalSet) -> None:
    save(path, late, RIGHT, RIGHT)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:-30])
    assert len(read(path)) == 1
    save(path, late, RIGHT, RIGHT)
    assert Path(path).read_bytes() == whole[: whole.index(b"\n") + 1] + whole


@pytest.mark.parametrize("text", ['{"my":"config"}', "mine", "\n\0", "{ "])
def test_a_file_of_the_users_own_is_untouched_also_without_an_end_of_line(
    path: str, text: str
) -> None:
    Path(path).write_text(text)
    with pytest.raises(SettingsError, match="line 1 is not a row that"):
        with opened(path):
            pass
    assert Path(path).read_text() == text


@pytest.mark.parametrize("half", ["{", '{"set"', '{"set":"late","row'])
def test_half_a_row_alone_is_cut(path: str, half: str) -> None:
    Path(path).write_text(half)
    with opened(path):
        pass
    assert Path(path).read_text() == ""


@pytest.mark.parametrize(
    "line",
    ["", "{}", "[]", "no JSON", '{"line": 1, "answers": {}}', '{"run": {"model": 1}}'],
)
def test_a_file_of_something_else_is_refused_and_untouched(path: str, line: str) -> None:
    Path(path).write_text(f"{line}\nhalf")
    with pytest.raises(SettingsError, match="line 1 is not a row that"):
        with opened(path):
            pass
    assert Path(path).read_text() == f"{line}\nhalf"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("confidence", "high"), ("confidence", None), ("row", "1"), ("error", 5), ("more", 1)],
        *[("confidence", 1.5), ("confidence", True), ("brier", -1), ("brier", 3), ("row", 0)],
        *[("row", True), ("cost_usd", -1), ("cost_usd", 10**400), ("latency_ms", -1)],
        *[("latency_ms", 1e300), ("agrees", 1), ("run", {**asdict(RUN), "debias": "yes"})],
        *[("run", {**asdict(RUN), "mode": 1}), ("run", {**asdict(RUN), "config": None})],
    ],
)
def test_a_line_with_a_value_that_cannot_be_is_refused(
    path: str, late: EvalSet, name: str, value: Any
) -> None:
    save(path, late, RIGHT)
    line = {**json.loads(Path(path).read_text()), name: value}
    Path(path).write_text(f"{json.dumps(line)}\n")
    with pytest.raises(SettingsError, match="line 1"):
        read(path)


def test_two_at_once_are_refused(path: str) -> None:
    with opened(path), pytest.raises(SettingsError, match="another process is writing it"):
        with opened(path):
            pass


def test_what_cannot_be_gone_on_with_is_refused(tmp_path: Path) -> None:
    for path in ("/dev/null", str(tmp_path), str(tmp_path / "no" / "file")):
        with pytest.raises(SettingsError, match="file "):
            with opened(path):
                pass


class FullDisk:
    """Takes half of the first line and nothing else, then everything."""

    lines, errors, resumable = 0, 0, True

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        if not self.data:
            self.data = data[:9]
            raise SettingsError("no space left on device")
        self.data += data

    def close(self) -> None: ...


def test_after_half_a_line_nothing_more_is_written(late: EvalSet) -> None:
    disk = FullDisk()
    saved = Saved(disk, [])
    for _ in range(2):
        with pytest.raises(SettingsError, match="no space left"):
            saved.add(RUN, late, late.rows[0], RIGHT)
    assert len(disk.data) == 9


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("@own/m", "@own/m"),
        (["a", "b"], "a then b"),
        ({"council": ["a", "b"]}, "council of a, b"),
        ({"cascade": ["a", "b"], "escalate_below": 0.9}, "cascade of a, b below 0.9"),
    ],
)
def test_a_plan_in_words(model: Any, text: str) -> None:
    assert plan_text(model) == text
