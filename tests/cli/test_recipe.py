from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from svc import inprocess
from svc.assets import recipes
from svc.cli.main import main
from svc.inprocess import InProcess
from svc.questions.kit.base import Question
from svc.schemas import load_decision, load_questions
from tests.cli.processes import svc

RECIPES = recipes()
STATES: list[Any] = [
    "My order 4711 never arrived. I want my money back, or can we talk about it tomorrow at 3 pm?",
    {"subject": "Invoice", "body": "Total 120.50 EUR, due on 2026-03-01", "amount": 120.5},
]


@pytest.fixture(scope="module")
def engine() -> Iterator[InProcess]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with inprocess.engine(demo=True, concurrency=1) as made:
        yield made
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_valid_and_is_answered(name: str, engine: InProcess) -> None:
    questions = RECIPES[name]["questions"]
    assert all(isinstance(one, Question) for one in load_questions(questions).values())
    for state in STATES:
        body = {"state": state, "questions": questions, "model": "@demo/lexical"}
        assert engine.decide(load_decision(body)).answers.keys() == questions.keys()


def test_there_are_recipes_for_what_people_ask_most() -> None:
    assert len(RECIPES) >= 12
    assert {question["type"] for r in RECIPES.values() for question in r["questions"].values()} == {
        *("choice", "score", "noul", "multi", "text", "number", "integer")
    }
    assert len(RECIPES["shop-intent"]["questions"]["intent"]["options"]) > 20


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_described_on_one_line(name: str) -> None:
    assert RECIPES[name].keys() == {"description", "questions"}
    assert 20 <= len(RECIPES[name]["description"]) <= 90


def test_the_list_has_every_recipe_with_its_description() -> None:
    shown = svc("recipe", "list").stdout.splitlines()
    assert [line.split("  ")[0] for line in shown] == sorted(RECIPES)
    assert all(RECIPES[line.split()[0]]["description"] in line for line in shown)


def test_what_is_shown_can_be_piped() -> None:
    ended = svc("recipe", "show", "sentiment")
    assert ended.returncode == 0 and json.loads(ended.stdout) == RECIPES["sentiment"]["questions"]


def test_a_recipe_that_is_not_there_is_an_error_with_those_that_are() -> None:
    ended = svc("recipe", "show", "../settings")
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.startswith("Error: there is no recipe '../settings'; there are: bug-report")


@pytest.mark.parametrize("arguments", [[], ["show"], ["show", "a", "b"], ["cook"]])
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["recipe", *arguments]).exit_code == 2


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["recipe", "--help"])
    assert "svc recipe show support-triage" in shown.output
