"""The eval sets that come with the project: their form, size and balance."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from svc.evals.sets import EvalSet, load_sets

FOLDER = Path(__file__).parents[2] / "evals"
SETS = load_sets(str(FOLDER), [])
NAMES = [one.name for one in SETS]
ROWS = 60
TYPES = {"choice", "score", "noul", "multi", "text", "number", "integer"}


def labels(one: EvalSet) -> Counter[str]:
    """How often each label occurs, options of a multi one by one."""
    listed = [row.label if isinstance(row.label, list) else [row.label] for row in one.rows]
    return Counter(json.dumps(label) for row in listed for label in row)


def test_there_are_enough_sets_of_every_type() -> None:
    assert len(SETS) >= 8
    assert {one.question["type"] for one in SETS} == TYPES


def test_some_state_is_an_object_and_some_choice_has_over_twenty_options() -> None:
    assert any(isinstance(row.state, dict) for one in SETS for row in one.rows)
    assert any(len(one.question.get("options", {})) > 20 for one in SETS)


@pytest.mark.parametrize("one", SETS, ids=NAMES)
def test_a_set_has_enough_rows_and_no_two_alike(one: EvalSet) -> None:
    states = [json.dumps(row.state, sort_keys=True) for row in one.rows]
    assert len(states) >= ROWS
    assert len({" ".join(state.casefold().split()) for state in states}) == len(states)


@pytest.mark.parametrize("one", SETS, ids=NAMES)
def test_no_label_stands_for_most_rows_and_every_one_occurs(one: EvalSet) -> None:
    counted = labels(one)
    kind = one.question["type"]
    if kind in ("choice", "score", "multi"):
        assert min(counted.values()) >= 2
        wanted: Any = one.question.get("options") or range(len(one.question.get("levels", [])))
        assert {json.dumps(label) for label in wanted} <= counted.keys()
    share = counted.most_common(1)[0][1] / len(one.rows)
    assert share <= (0.65 if kind == "noul" else 0.5)


@pytest.mark.parametrize("one", SETS, ids=NAMES)
def test_states_are_short_and_long(one: EvalSet) -> None:
    lengths = sorted(len(json.dumps(row.state)) for row in one.rows)
    assert lengths[-1] > 1.5 * lengths[0]


@pytest.mark.parametrize("one", [s for s in SETS if s.question["type"] == "text"])
def test_a_text_label_stands_in_its_state(one: EvalSet) -> None:
    for row in one.rows:
        assert row.label is None or row.label in row.state


@pytest.mark.parametrize("name", NAMES)
def test_a_set_says_what_it_is_about_and_the_readme_lists_it(name: str) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert len(content["about"]) > 40
    assert f"`{name}`" in (FOLDER / "README.md").read_text("utf-8")
