"""What a reviewer reads of an answer, and types for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.cli.label_answers import Sayable
from svc.questions import from_definition


@pytest.mark.parametrize("shares", [[0.1, 0.7, 0.2], {"0": 0.1, "1": 0.7, "2": 0.2}])
def test_the_level_of_an_answer_is_named_whichever_way_a_route_shows_levels(shares: Any) -> None:
    levels = ["low", "middle", "high"]
    definition = {"type": "score", "instructions": "How urgent?", "levels": levels}
    answer = {"score": 1.1, "probabilities": shares, "confidence": 0.7}
    assert Sayable(from_definition(json.dumps(definition))).answered(answer) == "middle, 70.0%"
