from __future__ import annotations

import json

import numpy as np
import pytest

from svc.engine.plans import Finding
from svc.learning.knowledge import Knowledge, Scores
from svc.questions import Reading, from_definition
from svc.records import Model
from svc.store import CalibrationState
from svc.terms import Mode


def finding(p: tuple[float, ...], model: str = "@p/m") -> Finding:
    reading = Reading(p)
    return Finding(reading, (Model(model, "p", "m"),), (Mode.LOGPROBS,), reading)


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
    found = known.calibrated(question, finding((0.25,) * 4)).probabilities
    by_key = dict(zip((*keys, "none_of_these"), found, strict=True))
    assert by_key["a"] == max(found) and by_key["none_of_these"] == min(found)
    assert by_key["b"] == pytest.approx(by_key["c"])


NOUL = from_definition(json.dumps({"type": "noul", "instructions": "Is it so?"}))


def known_of(pooled: float | None, **own: float | None) -> Knowledge:
    """Slopes of Platt calibrators: of all labels, and of models by name."""

    def entry(slope: float | None) -> dict[str, object]:
        parameters = None if slope is None else {"kind": "platt", "a": slope, "b": 0.0}
        return {"calibrator": parameters, "labels": 40, "own": True}

    groups = {f"@p/{name} logprobs": entry(slope) for name, slope in own.items()}
    text = json.dumps({"pooled": entry(pooled), "groups": groups})
    return Knowledge({NOUL.digest: CalibrationState(80, 80, 80, 0, text, 1)})


def test_of_a_value_without_a_confidence_no_calibrator_makes_one() -> None:
    """Labels count it as 0, and so do thresholds."""
    question = from_definition(json.dumps({"type": "text", "instructions": "Which city?"}))
    calibrator = json.dumps({"kind": "platt", "a": 0.1, "b": 3.0})
    state = CalibrationState(30, 30, 30, 0, calibrator, 1)
    known = Knowledge({question.digest: state})
    for p, confidence in ((0.0, 0.0), (0.5, pytest.approx(0.95, abs=0.01))):
        reading = Reading((p,), value="Rome")
        found = Finding(reading, (Model("@p/m", "p", "m"),), (Mode.VERBAL,), reading)
        assert known.confidence(question, found) == confidence


def test_each_answering_model_has_its_own_calibrator() -> None:
    known = known_of(1.0, sure=0.5, shy=2.0)
    shown = {
        model: known.calibrated(NOUL, finding((0.9,), f"@p/{model}")).probabilities[0]
        for model in ("sure", "shy", "new")
    }
    assert shown["new"] == pytest.approx(0.9)
    assert shown["sure"] < 0.85 and shown["shy"] > 0.95


def test_a_model_whose_raw_probabilities_are_best_is_not_calibrated() -> None:
    known = known_of(2.0, fine=None)
    assert known.calibrator(NOUL, finding((0.9,), "@p/fine")) is None
    assert known.calibrator(NOUL, finding((0.9,), "@p/other")) is not None


def hashes(*names: str) -> list[int]:
    return list(map(hash, names))


def scores_of(**labels: int) -> Scores:
    names = [f"{model} logprobs" for model in labels]
    groups = np.repeat(np.arange(len(names)), list(labels.values()))
    values = [0.1 if names[int(group)].startswith("good") else 2.0 for group in groups]
    return Scores(np.array(values), np.zeros(len(groups), int), None, groups, hashes(*names))


def test_a_set_promises_nothing_for_a_model_without_labels() -> None:
    scores = scores_of(good=40)
    assert scores.limit("good logprobs", 0.9) == pytest.approx(0.1)
    assert scores.limit("new logprobs", 0.9) is None


def test_a_model_with_few_labels_shares_those_of_all() -> None:
    scores = scores_of(good=35, bad=35, some=5)
    assert scores.limit("good logprobs", 0.9) == pytest.approx(0.1)
    assert scores.limit("bad logprobs", 0.9) == pytest.approx(2.0)
    assert scores.limit("some logprobs", 0.9) == pytest.approx(2.0)
    assert scores_of(good=29).limit("good logprobs", 0.9) is None


def test_each_option_is_held_by_the_labels_of_the_model_that_answered() -> None:
    """The sure model gives truths 0.1 and 0.3, the other one 2 and 3, by their option."""
    scores = np.repeat([0.1, 0.3, 2.0, 3.0], 40)
    truth, groups = np.tile(np.repeat([0, 1], 40), 2), np.repeat([0, 1], 80)
    labelled = Scores(scores, truth, None, groups, hashes("sure logprobs", "other logprobs"))
    found = [labelled.option_limits(f"{name} logprobs", 0.9, 3) for name in ("sure", "other", "x")]
    assert found[2] is None
    assert found[0] is not None and found[1] is not None
    assert [one.limit for one in found[0]] == pytest.approx([0.1, 0.3, 0.3])
    assert [one.limit for one in found[1]] == pytest.approx([2.0, 3.0, 3.0])
    assert [one.guaranteed for one in found[0]] == [True, True, False]
    covered = labelled.coverage_by_option(0.9, 3)
    assert [guaranteed for _, guaranteed in covered] == [True, True, False]
    assert [one.labels for one, _ in covered] == [80, 80, 0]


@pytest.mark.parametrize("seed", range(20))
def test_sets_promise_for_an_option_what_they_promise_for_each_model(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = ("a", "b", "c", "d")[: 1 + seed % 4]
    groups = np.concatenate([np.arange(len(names)), random.integers(0, len(names), 120)])
    weights = random.uniform(0.1, 5, len(groups)) if seed % 2 else None
    truth = random.choice(4, len(groups), p=(0.6, 0.25, 0.15, 0))
    labelled = Scores(random.exponential(size=len(groups)), truth, weights, groups, hashes(*names))
    of_each = [labelled.option_limits(name, 0.8, 4) or () for name in names]
    promised = [all(limits[option].guaranteed for limits in of_each) for option in range(4)]
    assert [one for _, one in labelled.coverage_by_option(0.8, 4)] == promised
