from __future__ import annotations

from typing import Any

import pytest

from svc.batch import Form, Record, format_of
from svc.errors import InvalidRequest

ROW = {"id": "t-1", "subject": "Late", "body": "Where is it?"}


@pytest.mark.parametrize(
    ("path", "form"),
    [("a.csv", "csv"), ("A.TSV", "tsv"), ("a.txt", "text"), ("a.jsonl", "jsonl"), ("-", "jsonl")],
)
def test_a_format_goes_by_the_end_of_the_name(path: str, form: str) -> None:
    assert format_of(path) == form


@pytest.mark.parametrize(
    ("form", "value", "record"),
    [
        (Form(), ROW, Record(ROW)),
        (Form("csv"), ROW, Record(ROW, None, ROW)),
        (Form("csv", columns=("body",)), ROW, Record("Where is it?", None, ROW)),
        (
            Form("csv", columns=("body", "subject")),
            ROW,
            Record({"body": "Where is it?", "subject": "Late"}, None, ROW),
        ),
        (
            Form("csv", ref="id"),
            ROW,
            Record({"subject": "Late", "body": "Where is it?"}, "t-1", ROW),
        ),
        (Form("csv", ref="id", columns=("id",)), ROW, Record("t-1", "t-1", ROW)),
        (
            Form("csv", ref="id", labels=("subject",)),
            ROW,
            Record("Where is it?", "t-1", ROW),
        ),
        (Form("csv"), {"body": "x"}, Record("x", None, {"body": "x"})),
        (Form(ref="id"), {"id": 7, "body": "x"}, Record({"body": "x"}, "7")),
        (Form(ref="id"), {"body": "x"}, Record({"body": "x"})),
        (
            Form(columns=("body",)),
            {"body": {"a": 1}, "b": 2},
            Record({"a": 1}, None, {"body": {"a": 1}, "b": 2}),
        ),
    ],
)
def test_a_record_is_what_the_columns_choose(form: Form, value: Any, record: Record) -> None:
    assert form.record(value) == record


@pytest.mark.parametrize(
    ("form", "value", "words"),
    [
        (Form(columns=("body",)), {"text": "x"}, 'the line has no "body"'),
        (Form(columns=("body",)), "x", "must be an object"),
        (Form("csv", columns=("body",)), {"body": " ", "id": "1"}, "there is no text in the row"),
        (Form("csv"), {"a": "", "b": ""}, "there is no text in the row"),
        (Form("csv", ref="id"), {"id": "x" * 129, "body": "x"}, '"id": '),
    ],
)
def test_a_record_that_lacks_what_is_chosen_says_so(form: Form, value: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        form.record(value)


def test_plain_json_lines_leave_the_record_of_a_run_as_it_was() -> None:
    assert Form().identity == {}
    assert Form("csv", "cp1252", ("a",), "id").identity == {
        "format": "csv",
        "encoding": "cp1252",
        "columns": ["a"],
        "ref_column": "id",
    }
