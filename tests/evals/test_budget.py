"""How many model calls commands say that they make at most."""

from __future__ import annotations

from typing import Any

import pytest

from svc.evals import most_calls
from svc.schemas import load_decision

CHOICE = {"type": "choice", "instructions": "Which?", "options": {"a": "", "b": ""}}
MULTI = {"type": "multi", "instructions": "Which?", "options": dict.fromkeys("abcdefghijkl", "")}


@pytest.mark.parametrize(
    ("questions", "fields", "calls"),
    [
        ([CHOICE], {}, 4),
        ([CHOICE], {"mode": "logprobs"}, 2),
        ([CHOICE], {"mode": "verbal", "debias": False}, 1),
        ([MULTI], {"mode": "verbal"}, 2),
        # Of a model that has to be asked for one label a call, a call for each.
        ([MULTI], {"mode": "logprobs"}, 2 + 24),
        ([MULTI], {"debias": False}, 2 + 12),
        ([CHOICE, CHOICE], {}, 4 + 4),
        ([MULTI] * 3, {}, 64),
    ],
)
def test_a_request_takes_no_more_calls_than_are_told(
    questions: list[Any], fields: dict[str, Any], calls: int
) -> None:
    asked = {f"q{number}": question for number, question in enumerate(questions)}
    assert most_calls(load_decision({"state": "x", "questions": asked, **fields})) == calls
