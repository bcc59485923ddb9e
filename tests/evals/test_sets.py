from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from svc.errors import SettingsError
from svc.evals.sets import load_set, load_sets
from tests.evals.samples import LATE, PEOPLE, TEAM, rows, write_set


def test_a_set_is_read_with_its_labels_checked(tmp_path: Path) -> None:
    labelled = [{"state": {"n": 2}, "label": 2.0, "hard": True}, {"state": "?", "label": None}]
    write_set(tmp_path, "people", PEOPLE, labelled)
    people = load_set(str(tmp_path), "people")
    assert people.question == PEOPLE
    assert [(row.number, row.state, row.truth) for row in people.rows] == [
        (1, {"n": 2}, 2),
        (2, "?", None),
    ]


def test_a_byte_order_mark_is_no_part_of_a_set(tmp_path: Path) -> None:
    path = write_set(tmp_path, "late", rows=rows(2))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_set(str(tmp_path), "late").rows) == 2


def test_all_sets_are_taken_unless_some_are_named(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        write_set(tmp_path, name, rows=rows(1))
    (tmp_path / "README.md").write_text("about them")
    assert [one.name for one in load_sets(str(tmp_path), [])] == ["a", "b", "c"]
    assert [one.name for one in load_sets(str(tmp_path), ["c", "a", "c"])] == ["c", "a"]


def test_a_sample_is_always_the_same_and_holds_every_smaller_one(tmp_path: Path) -> None:
    write_set(tmp_path, "late", rows=rows(50))
    late = load_set(str(tmp_path), "late")
    numbers = {n: [row.number for row in late.sampled(n).rows] for n in (5, 20, 50, 90)}
    assert numbers[5] == [row.number for row in late.sampled(5).rows] == sorted(numbers[5])
    assert set(numbers[5]) < set(numbers[20]) and numbers[20] != list(range(1, 21))
    assert numbers[50] == numbers[90] == list(range(1, 51))


@pytest.mark.parametrize(
    ("question", "labelled", "problem"),
    [
        (LATE, [], "rows must be a list of at least one row"),
        (LATE, {}, "rows must be a list"),
        (LATE, ["late"], "row 1: must be an object with state and label"),
        (LATE, [{"state": 1, "label": True}, {"state": 1}], "row 2: must be an object"),
        (LATE, [{"state": 1, "label": "yes"}], "row 1: label must be true or false"),
        (TEAM, [{"state": 1, "label": "sales"}], "row 1: label must be one of the option keys"),
        ({"type": "guess"}, rows(1), 'question "s": unknown type "guess"'),
        ("late?", rows(1), "must be an object with question and rows"),
        ({**LATE, "when": {"vip": True}}, rows(1), "row 1: question .* an object"),
        (LATE, [{"state": "a" * 150_001, "label": True}], "row 1: state: has 150,001 characters"),
    ],
)
def test_what_is_wrong_with_a_set_is_said_with_its_place(
    tmp_path: Path, question: Any, labelled: Any, problem: str
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"question": question, "rows": labelled}))
    with pytest.raises(SettingsError, match=rf"s\.json': {problem}"):
        load_set(str(tmp_path), "s")


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"rows": []}', "\ud800"])
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text, "utf-8", "surrogatepass")
    with pytest.raises(SettingsError, match="eval set"):
        load_set(str(tmp_path), "s")


def test_a_set_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    write_set(tmp_path, "late", rows=rows(1))
    with pytest.raises(SettingsError, match=r"no eval set '\.\./late' in .*; there are: late"):
        load_sets(str(tmp_path), ["../late"])
    with pytest.raises(SettingsError, match="no such file or directory"):
        load_sets(str(tmp_path / "none"), [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match="there is no eval set in"):
        load_sets(str(tmp_path / "empty"), [])
