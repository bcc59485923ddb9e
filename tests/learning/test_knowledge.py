from __future__ import annotations

import json

import pytest

from svc.learning.knowledge import Knowledge
from svc.questions import Reading, from_definition
from svc.store.labels import CalibrationState


@pytest.mark.parametrize("keys", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_a_bias_belongs_to_its_option_whatever_order_the_request_has(keys: tuple[str, ...]) -> None:
    options = dict.fromkeys(keys, "")
    definition = json.dumps(
        {"type": "choice", "instructions": "Which?", "options": options, "escape": True}
    )
    question = from_definition(definition)
    parameters = {"kind": "temperature", "t": 1.0, "bias": [3.0, 0.0, 0.0, -3.0]}
    state = CalibrationState(30, 30, 30, 0, json.dumps(parameters), 1)
    known = Knowledge({question.digest: state})
    found = known.calibrated(question, Reading((0.25,) * 4)).probabilities
    by_key = dict(zip((*keys, "none_of_these"), found, strict=True))
    assert by_key["a"] == max(found) and by_key["none_of_these"] == min(found)
    assert by_key["b"] == pytest.approx(by_key["c"])
