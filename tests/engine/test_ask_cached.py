from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from svc.errors import ModelError, Timeout
from svc.providers.failures import Refused
from tests.engine.fakes import failing, world
from tests.engine.models import CHOICE, NOUL, TEXT, Held, asking, named, saying, value, yes


def test_an_equal_request_is_answered_from_the_cache() -> None:
    with world(10, m=yes(0.8)) as made:
        first, second = made.decide(asking(NOUL)), made.decide(asking(NOUL))
        assert (first["cached"], second["cached"]) == (False, True)
        assert first["cost_usd"] == 0.002
        assert (second["cost_usd"], second["latency_ms"]) == (0, 0)
        assert second["answers"] == first["answers"]
        assert (second["debiased"], second["mode"]) == (True, "logprobs")
        assert len(made.client.calls) == 2


def test_a_cached_answer_keeps_what_the_provider_called_its_model_then() -> None:
    versions = [named("m-1"), named("m-1"), named("m-2"), named("m-2")]
    with world(10, m=lambda name, call: versions.pop(0)(name, call)) as made:
        first, second = made.decision(asking(NOUL)), made.decision(asking(NOUL))
        other = made.decision(asking(NOUL, state="another"))
    assert (second.cached, other.cached) == (True, False)
    assert [one.provider_models for one in (first, second, other)] == ["m-1", "m-1", "m-2"]


def test_without_a_cache_nothing_is_cached() -> None:
    with world(0, m=yes(0.8)) as made:
        assert [made.decide(asking(NOUL))["cached"] for _ in range(2)] == [False, False]


@pytest.mark.parametrize(
    "change",
    [
        {"project": "other"},
        {"model": "@here/n"},
        {"mode": "verbal"},
        {"mode": "logprobs"},
        {"privacy": "strict"},
        {"think": True},
        {"debias": False},
        {"debias": "auto"},
        {"config": "svc-1.0.0"},
        {"config": "svc-1.1.0"},
        {"images": ["https://a.example/1.png"]},
        {"state": "t"},
    ],
)
def test_whatever_changes_the_call_is_part_of_the_key(change: dict[str, Any]) -> None:
    with world(10, m=yes(0.8), n=yes(0.8)) as made:
        made.decide(asking(NOUL))
        assert made.decide(asking(NOUL, **change))["cached"] is False
        assert made.decide(asking(NOUL))["cached"] is True


def test_the_order_of_images_is_part_of_the_key() -> None:
    images = ["https://a.example/1.png", "https://a.example/2.png"]
    with world(10, m=yes(0.8)) as made:
        made.decide(asking(NOUL, images=images))
        assert made.decide(asking(NOUL, images=images[::-1]))["cached"] is False


def test_thresholds_are_applied_to_what_is_remembered() -> None:
    with world(10) as made:
        plain = {**CHOICE, "min_confidence": 0.1}
        assert made.decide(asking(plain))["answers"]["k0"]["abstain"] is False
        strict = {**CHOICE, "min_confidence": 0.9, "coverage": 0.8}
        response = made.decide(asking(strict))
        assert response["cached"] is True
        assert response["answers"]["k0"]["abstain"] is True
        assert response["answers"]["k0"]["coverage"] == 0.8


def test_a_renamed_question_is_the_same_ask() -> None:
    with world(10, m=yes(0.8)) as made:
        made.decide(asking(NOUL))
        response = made.decide({"state": "s", "questions": {"renamed": NOUL}})
        assert response["cached"] is True
        assert list(response["answers"]) == ["renamed"]


def test_extraction_is_cached_but_never_under_strict_privacy() -> None:
    with world(10, m=saying(value("Oslo"))) as made:
        assert [made.decide(asking(TEXT))["cached"] for _ in range(2)] == [False, True]
        strict = [made.decide(asking(TEXT, privacy="strict"))["cached"] for _ in range(2)]
        assert strict == [False, False]


def test_labels_are_cached_under_strict_privacy_apart_from_the_rest() -> None:
    with world(10, m=yes(0.8)) as made:
        strict = [made.decide(asking(NOUL, privacy="strict"))["cached"] for _ in range(2)]
        assert strict == [False, True]
        assert made.decide(asking(NOUL))["cached"] is False


def test_a_failure_is_not_cached() -> None:
    outcomes = [failing(Refused()), yes(0.8)]
    with world(10, m=lambda name, call: outcomes[0](name, call)) as made:
        with pytest.raises(ModelError):
            made.decide(asking(NOUL))
        outcomes.pop(0)
        assert made.decide(asking(NOUL))["cached"] is False


def test_equal_asks_under_way_share_one_call() -> None:
    held = Held(yes(0.8))
    with world(10, m=held) as made, ThreadPoolExecutor(4) as threads:
        asks = [threads.submit(made.decide, asking(NOUL)) for _ in range(4)]
        assert held.started.wait(30)
        held.let_go.set()
        responses = [ask.result(30) for ask in asks]
        assert sorted(response["cached"] for response in responses) == [False, True, True, True]
        assert sorted(response["cost_usd"] for response in responses) == [0, 0, 0, 0.002]
        assert all(r["latency_ms"] == 0 for r in responses if r["cached"])
        assert len(made.client.calls) == 2


def test_who_joined_is_not_failed_by_the_deadline_of_the_first() -> None:
    held = Held(yes(0.8))
    with world(10, m=held) as made, ThreadPoolExecutor(2) as threads:
        hasty = threads.submit(made.decide, asking(NOUL), 0.3)
        assert held.started.wait(30)
        patient = threads.submit(made.decide, asking(NOUL), 30)
        with pytest.raises(Timeout):
            hasty.result(30)
        held.let_go.set()
        assert patient.result(30)["answers"]["k0"]["noul"] == pytest.approx(0.8)
