from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc.evals.candidates import Candidate, candidates_for, examples, plans, split
from svc.evals.figures import figures_of
from svc.evals.scoring import Scored
from svc.evals.sets import EvalRow, EvalSet, load_set
from svc.evals.trials import ranked
from tests.evals.samples import LATE, PEOPLE, TEAM, rows, scored, write_set

TOPICS = {"type": "multi", "instructions": "Topics?", "options": {"price": "", "service": ""}}
MANY = {**TEAM, "options": {f"o{n}": "" for n in range(21)}}


def made(folder: Path, question: Any = LATE, count: int = 10, label: Any = True) -> EvalSet:
    write_set(folder, "s", question, rows(count, label))
    return load_set(str(folder), "s")


@pytest.mark.parametrize(
    ("count", "pool"), [(1, 0), (2, 1), (6, 3), (8, 4), (20, 4), (24, 4), (25, 5), (100, 20)]
)
def test_a_fifth_is_for_examples_at_least_4_and_at_most_half(
    tmp_path: Path, count: int, pool: int
) -> None:
    all_rows = made(tmp_path, count=count).rows
    shown, tested = split(all_rows)
    assert (len(shown), len(tested)) == (pool, count - pool)
    assert sorted(row.number for row in [*shown, *tested]) == list(range(1, count + 1))
    assert split(all_rows) == (shown, tested)


def test_a_state_that_comes_again_is_an_example_or_tested(tmp_path: Path) -> None:
    write_set(tmp_path, "s", LATE, rows(60) * 2)
    shown, tested = split(load_set(str(tmp_path), "s").rows)
    assert (len(shown), len(tested)) == (24, 96)
    assert not {row.state for row in shown} & {row.state for row in tested}
    assert len({one["state"] for one in examples(shown)}) == 4


def test_examples_show_as_many_labels_as_there_are() -> None:
    labels = ["a", "a", "a", "b", "a", "c"]
    pool = [EvalRow(n, f"state {n}", label, label, "") for n, label in enumerate(labels)]
    chosen = examples(pool)
    assert [one["label"] for one in chosen] == ["a", "b", "c", "a"]
    assert chosen[0] == {"state": "state 0", "label": "a"}
    assert examples([]) == []


def test_several_models_are_also_a_council_and_cascades() -> None:
    assert plans(["a"]) == ["a"]
    assert plans(["a", "b"]) == [
        "a",
        "b",
        {"council": ["a", "b"]},
        {"cascade": ["a", "b"], "escalate_below": 0.7},
        {"cascade": ["a", "b"], "escalate_below": 0.8},
        {"cascade": ["a", "b"], "escalate_below": 0.9},
    ]


def test_every_plan_has_eight_candidates(tmp_path: Path) -> None:
    shown = [{"state": "Gone", "label": True}]
    tried = candidates_for(made(tmp_path), ["a", "b"], shown)
    ways = {(json.dumps(c.model), c.mode, c.debias, c.examples) for c in tried}
    assert len(tried) == len(ways) == 6 * 8
    assert {c.mode for c in tried} == {"auto", "verbal"}
    assert {tuple(c.question.get("examples", ())) for c in tried if not c.examples} == {()}
    assert all(c.question["examples"] == shown for c in tried if c.examples)


def test_a_type_without_examples_has_four(tmp_path: Path) -> None:
    tried = candidates_for(
        made(tmp_path, TOPICS, label=["price"]), ["a"], [{"state": 1, "label": []}]
    )
    assert len(tried) == 4 and {c.examples for c in tried} == {0}


@pytest.mark.parametrize(
    ("question", "label", "model", "calls"),
    [
        (LATE, True, "a", {"auto both": 4, "auto one": 2, "verbal both": 2, "verbal one": 1}),
        (LATE, True, "ab", {"auto both": 8, "auto one": 4, "verbal both": 4, "verbal one": 2}),
        (PEOPLE, 3, "a", {"auto both": 1, "auto one": 1, "verbal both": 1, "verbal one": 1}),
        (MANY, "o1", "a", {"auto both": 2, "auto one": 1, "verbal both": 2, "verbal one": 1}),
        (
            {**LATE, "think": True},
            True,
            "a",
            {"auto both": 2, "auto one": 1, "verbal both": 2, "verbal one": 1},
        ),
    ],
)
def test_the_bound_counts_members_orders_and_the_way_back_to_verbal(
    tmp_path: Path, question: Any, label: Any, model: str, calls: dict[str, int]
) -> None:
    tried = candidates_for(made(tmp_path, question, label=label), list(model), [])
    plan = model if len(model) == 1 else {"council": list(model)}
    found = {
        f"{c.mode} {'both' if c.debias else 'one'}": c.most_calls for c in tried if c.model == plan
    }
    assert found == calls


def test_the_best_is_right_most_often_then_best_calibrated_then_cheapest(tmp_path: Path) -> None:
    one = candidates_for(made(tmp_path), ["a"], [])[0]
    right, wrong = scored("a", "a", 0.7, cost_usd=0.0), scored("a", "b", 0.7)
    sure, dear = replace(right, confidence=1.0, cost_usd=9.0), replace(right, cost_usd=1.0)
    tried: dict[str, list[Scored]] = {
        "failing": [right, Scored(error="no"), Scored(error="no")],
        "half": [right, wrong, wrong],
        "dear": [dear, dear, right],
        "cheap": [right, right, right],
        "calibrated": [sure, sure, sure],
    }
    pairs: list[tuple[Candidate, Any]] = [
        (replace(one, model=name), figures_of(found)) for name, found in tried.items()
    ]
    names = [candidate.model for candidate, _ in ranked(pairs)]
    assert names[:3] == ["calibrated", "cheap", "dear"]
    assert set(names[3:]) == {"half", "failing"}


def test_the_fields_are_those_of_a_request(tmp_path: Path) -> None:
    one = candidates_for(made(tmp_path), ["a", "b"], [])[-1]
    assert one.fields("late") == {
        "model": {"cascade": ["a", "b"], "escalate_below": 0.9},
        "mode": "verbal",
        "debias": False,
        "questions": {"late": {**LATE, "examples": []}},
    }
