"""Files that people and interrupted runs leave: read, or refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc import jsontext
from svc.batch.agreement import check_labels
from svc.batch.inputs import LINE_BYTES, open_input, read_lines
from svc.batch.outputs import RUN_SUFFIX, open_output
from svc.cli.question_files import read_named
from svc.errors import ApiError, InvalidJson, InvalidRequest, SettingsError
from svc.evals.runs import by_run, opened, read
from svc.evals.scoring import Scored
from svc.evals.sets import load_set
from svc.schemas import load_questions
from tests.contract.test_properties import WHOLE
from tests.fuzz.inputs import FUZZED, JSON, as_json, damaged, damaged_bytes, nested

QUESTIONS = WHOLE["questions"]
SET = {
    "question": {"type": "noul", "instructions": "Is it?"},
    "rows": [{"state": {"a": 1}, "label": True}, {"state": "b", "label": False}],
}
RUN_OF_ROW = {"model": ["a/b", "c/d"], "mode": "auto", "debias": True, "config": "svc-1.0.0"}
ROW = {
    "set": "s",
    "row": 1,
    "run": RUN_OF_ROW,
    "question": "q",
    "content": "c",
    **asdict(Scored()),
}
RUN = {"questions": "q", "input": "i", "model": {"council": ["a", "b"]}}


@contextlib.contextmanager
def refused_in_one_line() -> Any:
    """What is inside may end in a refusal, one line of it."""
    try:
        yield
    except SettingsError as error:
        assert error.message and error.message.isprintable()


@FUZZED
@given(data=damaged_bytes(SET))
def test_an_eval_set_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.json").write_bytes(data)
    with refused_in_one_line():
        assert load_set(str(tmp_path), "s").rows


@FUZZED
@given(data=damaged_bytes(QUESTIONS))
@example(data=b'{"\\n": null}')
def test_a_file_of_questions_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "q.json"
    path.write_bytes(data)
    with refused_in_one_line():
        assert read_named(str(path)).fields


@FUZZED
@given(lines=st.lists(st.one_of(damaged_bytes(ROW), st.binary(max_size=20)), max_size=4))
def test_a_file_of_scored_rows_is_read_or_refused(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(b"\n".join([jsontext.dumps(ROW).encode(), *lines]))
    with refused_in_one_line():
        by_run(read(str(path)))
        with opened(str(path)):
            pass
        assert path.read_bytes() == b"" or path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("field", ["model", "mode", "debias", "config"])
@pytest.mark.parametrize("depth", [100, 600, 3_000])
def test_a_scored_row_that_is_nested_is_refused(tmp_path: Path, depth: int, field: str) -> None:
    path = tmp_path / "saved.jsonl"
    path.write_bytes(as_json({**ROW, "run": {**RUN_OF_ROW, field: [nested(depth)]}}) + b"\n")
    with pytest.raises(SettingsError, match="line 1 is not a row that"):
        read(str(path))


@FUZZED
@given(
    record=damaged_bytes(RUN),
    lines=st.lists(st.one_of(st.just(b'{"line":1,"answers":{}}'), st.binary(max_size=20))),
)
@example(record=as_json({"questions": nested(3_000)}), lines=[b"{}"])
@example(record=as_json({**RUN, "\n\x1b[2J": 1}), lines=[b"{}"])
def test_an_output_is_gone_on_with_or_refused(
    tmp_path: Path, record: bytes, lines: list[bytes]
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"\n".join(lines))
    path.with_name(path.name + RUN_SUFFIX).write_bytes(record)
    with refused_in_one_line(), contextlib.closing(open_output(str(path), RUN, False)) as output:
        assert output.lines == path.read_bytes().count(b"\n")


@FUZZED
@given(data=st.one_of(st.binary(max_size=200), damaged_bytes(WHOLE)))
def test_every_line_of_an_input_is_a_value_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "input.jsonl"
    path.write_bytes(data)
    source = open_input(str(path))
    with contextlib.closing(source):
        lines = list(source.lines)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert source.total == len(lines)
    for line in lines:
        with contextlib.suppress(InvalidJson):
            jsontext.dumps(line.parse())


@FUZZED
@given(value=st.one_of(damaged({"z": "a", "y": 1, "x": True, "w": ["a"], "v": "t", "u": 3}), JSON))
def test_any_labels_of_a_line_are_taken_or_refused(value: Any) -> None:
    with contextlib.suppress(InvalidRequest):
        json.dumps(check_labels(load_questions(QUESTIONS), value, "labels"))


def test_what_is_damaged_is_good(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SET))
    (tmp_path / "saved.jsonl").write_text(json.dumps(ROW) + "\n")
    assert len(load_set(str(tmp_path), "s").rows) == 2
    assert len(read(str(tmp_path / "saved.jsonl"))) == 1
    (line,) = read_lines(io.BytesIO(b"1" * LINE_BYTES))
    assert line.data is not None
    with pytest.raises(ApiError):
        load_questions({})
