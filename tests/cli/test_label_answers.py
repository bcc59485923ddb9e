"""What a reviewer reads of an answer, and types for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.cli.label_answers import Sayable
from svc.questions import from_definition


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("not urgent", ["not urgent"]),
        ("refund, not urgent", ["refund", "not urgent"]),
        ("urgent refund", ["urgent", "refund"]),
        ("1 3", ["not urgent", "refund"]),
        ("1,1", ["not urgent"]),
        ("now, or never", ["now, or never"]),
        ("or never", ["now, or never"]),
        ("r n", ["now, or never"]),
        ("refund no", ["refund not sent"]),
        ("refund not sent, urgent", ["refund not sent", "urgent"]),
        ("-", []),
    ],
)
def test_options_are_typed_with_commas_or_blanks_between(line: str, label: list[str]) -> None:
    names = ["urgent", "not urgent", "refund", "now, or never", "refund not sent"]
    options = dict.fromkeys(names, "")
    definition = {"type": "multi", "instructions": "Which?", "options": options}
    assert Sayable(from_definition(json.dumps(definition))).parsed(line) == label


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("a,", ["a"]),
        (",", []),
        (", ,", []),
        ("a, b", ["a, b"]),
        ("b,,a", ["b", "a"]),
        ("a b,", ["a", "b"]),
        ("1 3,", ["a", "b"]),
    ],
)
def test_commas_with_nothing_between_name_no_option(line: str, label: list[str]) -> None:
    definition = {"type": "multi", "instructions": "?", "options": {"a, b": "", "a": "", "b": ""}}
    assert Sayable(from_definition(json.dumps(definition))).parsed(line) == label


def test_a_typed_name_that_is_none_is_named() -> None:
    definition = {"type": "multi", "instructions": "Which?", "options": {"a": "", "b": ""}}
    with pytest.raises(ValueError, match="'c' is no option"):
        Sayable(from_definition(json.dumps(definition))).parsed("a, c")


@pytest.mark.parametrize("shares", [[0.1, 0.7, 0.2], {"0": 0.1, "1": 0.7, "2": 0.2}])
def test_the_level_of_an_answer_is_named_whichever_way_a_route_shows_levels(shares: Any) -> None:
    levels = ["low", "middle", "high"]
    definition = {"type": "score", "instructions": "How urgent?", "levels": levels}
    answer = {"score": 1.1, "probabilities": shares, "confidence": 0.7}
    assert Sayable(from_definition(json.dumps(definition))).answered(answer) == "middle, 70.0%"
