"""Rows become requests and columns; whatever is in a row, its failure is a value in it."""

from __future__ import annotations

import datetime
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.bulk.columns import ERROR, FIELDS, OF_ROWS
from svc.bulk.rows import Asking, Rows, asking, check_columns
from svc.bulk.services import Services
from svc.client import (
    Choice,
    Decision,
    Integer,
    InvalidRequest,
    Multi,
    NoAnswer,
    Number,
    Score,
    Text,
    YesNo,
)

LATE = {"late": YesNo("Is it late?")}
POISON = "poison"
BAD: list[Any] = [
    None,
    math.nan,
    math.inf,
    b"bytes",
    {1, 2},
    {"deep": {"at": datetime.date(2026, 1, 1)}},
    {"deep": [math.nan]},
    object(),
]


@dataclass
class Fake:
    """Services that answer every row but those that hold `POISON`."""

    error: BaseException = field(default_factory=lambda: InvalidRequest(422, "t", "m", "-"))
    answer: Mapping[str, Any] = field(default_factory=lambda: {"type": "noul", "noul": 0.25})
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def decide(self, key: str, state: Any, questions: Any, options: Any) -> Decision:
        self.asked.append((key, state))
        if POISON in json.dumps(state):
            raise self.error
        answers = dict.fromkeys(questions, self.answer)
        id_ = f"dec_{len(self.asked)}"
        fields = {"id": id_, "model": "m", "cost_usd": 0.5, "answers": answers}
        return Decision(fields, lambda *args: None)

    def close(self) -> None:
        pass


def asked(questions: Any = None, **options: Any) -> Asking:
    return asking(questions or LATE, **{"state": "text", "row_id": "id", **options})


def decided(
    columns: Mapping[str, list[Any]], fake: Fake | None = None, **options: Any
) -> list[dict[str, Any]]:
    with Rows(asked(**options), cast(Services, fake or Fake())) as rows:
        return rows.decide(columns)


def texts(*values: Any) -> dict[str, list[Any]]:
    return {"id": list(range(len(values))), "text": list(values)}


def keys(columns: Mapping[str, list[Any]], **options: Any) -> list[str]:
    fake = Fake()
    decided(columns, fake, threads=1, **options)
    return [key for key, _ in fake.asked]


def test_answers_stand_in_the_order_of_their_rows() -> None:
    fake = Fake()
    rows = decided(texts(*map(str, range(200))), fake)
    by_state = {state: f"dec_{n}" for n, (_, state) in enumerate(fake.asked, 1)}
    assert sorted(by_state) == sorted(map(str, range(200)))
    assert all(row[ERROR] is None and row["late"]["noul"] == 0.25 for row in rows)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_what_cannot_be_sent_is_an_error_value_between_good_rows(bad: Any) -> None:
    fake = Fake()
    first, failed, last = decided(texts("a", bad, "b"), fake)
    assert (first[ERROR], last[ERROR]) == (None, None)
    assert failed[ERROR].startswith('invalid_row: state: column "text" ')
    assert [name for name, value in failed.items() if value is not None] == [ERROR]
    assert len(fake.asked) == 2


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_row_id_that_is_none_is_an_error_value(bad: Any) -> None:
    (row,) = decided({"id": [bad], "text": ["a"]})
    assert row[ERROR].startswith('invalid_row: row_id: column "id" ')


@given(st.recursive(st.one_of(st.none(), st.floats(), st.binary(), st.text()), st.lists))
def test_no_value_raises_and_no_error_shows_it(value: Any) -> None:
    mark = "MARK"
    (row,) = decided(texts([mark, value]), Fake(answer={"noul": 0.5}))
    assert row.keys() == {*LATE, *OF_ROWS}
    assert mark not in (row[ERROR] or "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InvalidRequest(422, "invalid_request", "state: is too long", "-"), "invalid_request: sta"),
        (NoAnswer("no answer from http://x (Timeout)"), "no_answer: no answer from http://x"),
        (RuntimeError("holds the input"), "failed: RuntimeError"),
    ],
)
def test_a_failure_is_told_in_its_row_alone(error: BaseException, said: str) -> None:
    rows = decided(texts("a", POISON, "b"), Fake(error))
    assert rows[1][ERROR].startswith(said)
    assert "input" not in rows[1][ERROR]
    assert [row[ERROR] for row in rows[::2]] == [None, None]


def test_several_columns_are_an_object_in_which_some_may_be_null() -> None:
    fake = Fake()
    columns = {"id": [1, 2], "title": ["a", math.nan], "body": [None, "b"]}
    good, bad = decided(columns, fake, state=["title", "body"])
    assert [state for _, state in fake.asked] == [{"title": "a", "body": None}]
    assert good[ERROR] is None
    assert bad[ERROR] == 'invalid_row: state: column "title" is not a finite number'


def test_a_row_that_is_asked_again_has_the_same_key() -> None:
    assert keys(texts("a", "b")) == keys(texts("a", "b"))


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (texts("b"), {}),
        ({"id": [1], "text": ["a"]}, {}),
        ({"id": ["0"], "text": ["a"]}, {}),
        (texts("a"), {"job": "other"}),
        (texts("a"), {"project": "other"}),
        (texts("a"), {"model": "other"}),
        (texts("a"), {"more": {"mode": "verbal"}}),
        (texts("a"), {"questions": {"late": YesNo("Is it very late?")}}),
        (texts("a"), {"questions": {"later": YesNo("Is it late?")}}),
    ],
)
def test_a_row_that_differs_in_anything_has_another_key(columns: Any, options: Any) -> None:
    assert keys(columns, **options) != keys(texts("a"))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (Choice("q", ["a", "b"]), {"choice": "a", "probabilities": {"a": 1.0}, "confidence": 1.0}),
        (Score("q", ["a", "b"]), {"score": 0.5, "probabilities": [0.5, 0.5], "confidence": 0.5}),
        (YesNo("q"), {"noul": 0.5, "set": ["yes"]}),
        (Multi("q", ["a", "b"]), {"selected": ["a"], "probabilities": {"a": 0.5, "b": 0.1}}),
        (Text("q"), {"value": "a", "confidence": 0.5, "abstain": True}),
        (Number("q"), {"value": 2, "confidence": 0.5}),
        (Integer("q"), {"value": 2, "confidence": 0.5}),
    ],
)
def test_an_answer_of_every_type_has_the_fields_of_its_column(question: Any, answer: Any) -> None:
    sent = {"type": question.type, "calibrated": False, "explain": {"x": 1.0}, **answer}
    (row,) = decided(texts("a"), Fake(answer=sent), questions={"q": question})
    assert list(row["q"]) == list(FIELDS[question.type])
    assert {name: row["q"][name] for name in answer} == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (Choice("?", {"a": "", "b": ""}), {"choice": 5}),
        (Choice("?", {"a": "", "b": ""}), {"choice": "\ud800"}),
        (Choice("?", {"a": "", "b": ""}), {"choice": "a", "probabilities": [0.5, 0.5]}),
        (Choice("?", {"a": "", "b": ""}), {"choice": "a", "probabilities": {"\udfff": 1.0}}),
        (Choice("?", {"a": "", "b": ""}), {"choice": "a", "set": "a"}),
        (Score("?", ["x", "y"]), {"score": 10**400}),
        (Score("?", ["x", "y"]), {"score": 1.0, "probabilities": [None]}),
        (YesNo("?"), {"noul": "0.5"}),
        (YesNo("?"), {"noul": 0.5, "calibrated": 1}),
        (Multi("?", {"a": "", "b": ""}), {"selected": {"a": 1}}),
        (Score("?", ["x", "y"]), {"score": 1.0, "probabilities": [0.5, True]}),
        (Multi("?", {"a": "", "b": ""}), {"selected": ["\ud800"]}),
        (Multi("?", {"a": "", "b": ""}), {"selected": [], "probabilities": {"a": False}}),
        (YesNo("?"), {"noul": True}),
        (Text("?"), {"value": "a", "abstain": "false"}),
        (Number("?"), {"value": True}),
        (Number("?"), {"value": 10**400}),
        (Integer("?"), {"value": 1.5}),
        (Integer("?"), {"value": True}),
        (Text("?"), {"value": ["x"]}),
    ],
)
def test_an_answer_that_no_column_holds_is_an_error_value(question: Any, answer: Any) -> None:
    (row,) = decided(texts("x"), Fake(answer=answer), questions={"q": question})
    assert row["q"] is None and "of another type than the service has" in row[ERROR]


def test_what_a_service_says_can_stand_in_a_column_of_texts() -> None:
    (row,) = decided(texts(POISON), Fake(error=InvalidRequest(422, "t", "\ud800", "-")))
    assert row[ERROR] == "t: ?"


def test_a_question_that_was_skipped_is_null_without_an_error() -> None:
    (row,) = decided(texts("a"), Fake(answer={"skipped": True}))
    assert (row["late"], row[ERROR]) == (None, None)


def test_a_whole_number_that_no_column_holds_is_an_error_value() -> None:
    fake = Fake(answer={"value": 2**63, "confidence": 1.0})
    (row,) = decided(texts("a"), fake, questions={"q": Integer("q")})
    assert row[ERROR].startswith("too_large: ")


@pytest.mark.parametrize(
    ("question", "name", "answer", "held"),
    [
        (Number("?"), "value", {"value": 2**53 + 1}, 2.0**53),
        (Number("?"), "value", {"value": 10**20}, 1e20),
        (
            Score("?", ["x", "y"]),
            "probabilities",
            {"probabilities": [2**53 + 1, 0]},
            [2.0**53, 0.0],
        ),
        (Choice("?", ["a"]), "probabilities", {"probabilities": {"a": 2**53 + 1}}, {"a": 2.0**53}),
        (Integer("?"), "value", {"value": 2**53 + 1}, 2**53 + 1),
    ],
)
def test_numbers_are_of_their_columns_type_also_from_a_checkpoint(
    tmp_path: Path, question: Any, name: str, answer: Any, held: Any
) -> None:
    fake = Fake(answer=answer)
    rows = decided(texts("a"), fake, questions={"q": question}, checkpoint=tmp_path)
    # As a version of before wrote it: with the numbers of the service.
    ((key, _),), (path,) = fake.asked, tmp_path.iterdir()
    before = {**rows[0], "q": {**rows[0]["q"], **answer}}
    path.write_text(f"{key} {json.dumps(before)}\n")
    again = decided(texts("a"), fake, questions={"q": question}, checkpoint=tmp_path)
    assert [repr(row["q"][name]) for row in (*rows, *again)] == [repr(held)] * 2
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"late": {"noul": True}},
        {"late": {"set": ["\ud800"]}},
        {"late": {"calibrated": 1}},
        {"decision_id": 5},
        {"cost_usd": "0.1"},
        {"error": "\ud800"},
    ],
)
def test_what_no_column_holds_in_a_checkpoint_is_asked(tmp_path: Path, answer: Any) -> None:
    first, second = Fake(), Fake()
    (before,) = decided(texts("a"), first, checkpoint=tmp_path)
    ((key, _),), (path,) = first.asked, tmp_path.iterdir()
    late = {**before["late"], **answer.get("late", {})}
    path.write_text(f"{key} {json.dumps({**before, **answer, 'late': late})}\n")
    assert decided(texts("a"), second, checkpoint=tmp_path) == [before]
    assert len(second.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"late": {"noul": 0.5}},
        {"late": 1, "decision_id": "d", "cost_usd": 0.1, "error": None},
        {"late": {"other": 1}, "decision_id": "d", "cost_usd": 0.1, "error": None},
        {"more": 1, "late": None, "decision_id": "d", "cost_usd": 0.1, "error": None},
    ],
)
def test_what_is_no_answer_in_a_checkpoint_is_asked(tmp_path: Path, answer: Any) -> None:
    first, second = Fake(), Fake()
    (before,) = decided(texts("a"), first, checkpoint=tmp_path)
    ((key, _),) = first.asked
    (path,) = tmp_path.iterdir()
    path.write_text(f"{key} {json.dumps(answer)}\n")
    assert decided(texts("a"), second, checkpoint=tmp_path) == [before]
    assert len(second.asked) == 1


def test_a_second_run_asks_only_what_the_checkpoint_does_not_have(tmp_path: Path) -> None:
    first, second = Fake(), Fake()
    before = decided(texts("a", POISON, "b"), first, checkpoint=tmp_path)
    after = decided(texts("a", POISON, "b", "c"), second, checkpoint=tmp_path)
    assert sorted(state for _, state in second.asked) == ["c", POISON]
    assert after[:3] == before


def test_the_key_is_in_no_representation_and_reaches_the_workers() -> None:
    one = asked(api_key="svc_secret")
    assert "svc_secret" not in f"{one!r} {one} {vars(one)}"
    (key,) = pickle.loads(pickle.dumps(one)).api_keys
    assert key.reveal() == "svc_secret"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"questions": {}}, "at least one"),
        ({"questions": {"error": YesNo("q")}}, '"error" is the name of a column'),
        ({"questions": {"q": "Is it late?"}}, '"q" must be a Choice'),
        ({"questions": {"q": YesNo("q", more={"x": b""})}}, "must hold JSON values alone"),
        ({"more": {"x": math.nan}}, "must hold JSON values alone"),
        ({"url": "localhost"}, "must be the base URL"),
        ({"threads": 0}, "threads: must be at least 1"),
        ({"checkpoint": "s3://bucket/folder"}, "must be a folder"),
    ],
)
def test_what_could_not_be_asked_is_refused_before_the_first_row(options: Any, said: str) -> None:
    arguments = {"questions": LATE, "state": "text", "row_id": "id", **options}
    with pytest.raises(ValueError, match=said):
        asking(**arguments)


def test_columns_that_are_missing_or_taken_are_named() -> None:
    with pytest.raises(ValueError, match='no column "text"; there are "id", "body"'):
        check_columns(["id", "body"], asked())
    with pytest.raises(ValueError, match='already a column "late", "error"'):
        check_columns(["id", "text", "late", "error"], asked())
