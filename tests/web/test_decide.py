from __future__ import annotations

import json
import re
from typing import Any

from tests.preferring import PreferringModel
from tests.web.conftest import Start
from tests.web.models import decision, replying, verbal_only


def ask(start: Start, *args: Any, **fields: Any) -> dict[str, Any]:
    response = start(*args).test_client().post("/v1/decide", json=decision(**fields))
    assert response.status_code == 200, response.text
    return dict(response.get_json())


def test_a_decision_comes_back_with_every_field_of_the_contract(start: Start) -> None:
    body = ask(start)
    assert re.fullmatch(r"dec_[0-9A-HJKMNP-TV-Z]{26}", body.pop("id"))
    assert body.pop("latency_ms") > 0
    answer = body.pop("answers")["animal"]
    assert answer["type"] == "choice"
    assert answer["choice"] == "cat"
    assert answer["probabilities"] == {"cat": 0.75, "dog": 0.25}
    assert answer["confidence"] == 0.75
    assert answer["calibrated"] is False
    assert body == {
        "model": "@scripted/m",
        "mode": "logprobs",
        "cost_usd": 0.0,
        "cached": False,
        "debiased": True,
        "project": "default",
        "config": "svc-1.3.0",
    }


def test_a_bias_towards_the_first_option_is_averaged_away(start: Start) -> None:
    biased = PreferringModel(first_bonus=4.0)
    shares = ask(start, replying(biased))["answers"]["animal"]["probabilities"]
    assert shares == {"cat": 0.5, "dog": 0.5}


def test_without_debiasing_the_bias_shows(start: Start) -> None:
    biased = PreferringModel(first_bonus=4.0)
    body = ask(start, replying(biased), debias=False)
    assert body["answers"]["animal"]["probabilities"] == {"cat": 0.8, "dog": 0.2}
    assert body["debiased"] is False


def test_a_provider_without_logprobs_is_asked_verbally(start: Start) -> None:
    body = ask(start, verbal_only())
    assert body["mode"] == "verbal"
    assert body["answers"]["animal"]["choice"] == "cat"


def test_a_repeated_request_is_answered_from_the_cache_under_its_own_id(start: Start) -> None:
    client = start().test_client()
    first, again = (client.post("/v1/decide", json=decision()).get_json() for _ in range(2))
    assert (first["cached"], again["cached"]) == (False, True)
    assert (again["latency_ms"], again["cost_usd"]) == (0, 0)
    assert again["answers"] == first["answers"]
    assert again["id"] > first["id"]


def test_text_of_every_script_survives_the_way_there_and_back(start: Start) -> None:
    key = "\u00fcber \U0001f600 \u05d0"
    question = {"type": "noul", "instructions": "Is it \u732b?"}
    body = decision(state="\U0001f408", project=key) | {"questions": {key: question}}
    response = start().test_client().post("/v1/decide", json=body)
    assert response.status_code == 200
    assert list(response.get_json()["answers"]) == [key]
    assert response.get_json()["project"] == key


def test_the_questions_order_is_kept(start: Start) -> None:
    names = [f"q{n}" for n in (3, 1, 64, 2)]
    questions = {name: {"type": "noul", "instructions": name} for name in names}
    body = json.dumps({"state": "s", "questions": questions})  # Flask's own would sort the keys
    response = start().test_client().post("/v1/decide", data=body)
    assert list(response.get_json()["answers"]) == names


def test_every_answer_says_its_type_where_it_is_returned_and_where_it_is_stored(
    start: Start,
) -> None:
    client = start().test_client()
    asked = {"type": "yes_no", "instructions": "Is it a cat?"}
    ruled = {**asked, "rules": [{"if": {"pet": "dog"}, "answer": False}]}
    skipped = {**asked, "when": {"pet": "fish"}}
    questions = {"asked": asked, "ruled": ruled, "skipped": skipped}
    body = decision(state={"pet": "dog"}) | {"questions": questions}
    decided = client.post("/v1/decide", json=body).get_json()
    assert [one.get("type") for one in decided["answers"].values()] == ["noul", "noul", None]
    assert decided["answers"]["skipped"] == {"skipped": True}
    stored = client.get(f"/v1/decisions/{decided['id']}").get_json()
    assert stored["answers"] == decided["answers"]
