from __future__ import annotations

import hashlib
import json
import re
import threading
from itertools import count
from typing import Any

import pytest

from svc import limits
from svc.deadline import Deadline
from svc.errors import InvalidRequest, ModelError, Timeout
from svc.pins import NEWEST
from svc.providers.bodies import ChatCall
from svc.providers.failures import Refused
from svc.providers.replies import Completion
from svc.records import Answer, Decision
from svc.schemas import load_decision
from svc.store import StorageError
from tests.engine.fakes import World, answering, failing, world
from tests.engine.models import (
    CHOICE,
    INTEGER,
    MULTI,
    NOUL,
    SCORE,
    TEXT,
    babbling,
    by_text,
    in_mode,
    in_order,
    named,
    saying,
    user_text,
    value,
    yes,
)
from tests.preferring import PreferringModel

IMAGE = "https://a.example/1.png"


def asking(*questions: dict[str, Any], state: Any = "s", **fields: Any) -> dict[str, Any]:
    numbered = {f"k{i}": question for i, question in enumerate(questions or [NOUL])}
    return {"state": state, "questions": numbered, **fields}


# --- the response ---


def test_a_response_has_every_field_of_the_contract_and_no_other() -> None:
    with world(m=yes(0.9)) as made:
        response = made.decide(asking(project="shop", config="svc-1.1.0"))
        latency = response.pop("latency_ms")
        assert latency > 0
        assert response == {
            "id": "dec_1",
            "model": "@here/m",
            "mode": "logprobs",
            "cost_usd": 0.002,
            "cached": False,
            "debiased": True,
            "project": "shop",
            "config": "svc-1.1.0",
            "answers": {"k0": {"type": "noul", "noul": 0.9, "calibrated": False}},
        }


def test_answers_have_the_fields_of_their_type_in_the_order_asked() -> None:
    with world(m=answering(PreferringModel({"billing": 2.0, "high": 2.0}))) as made:
        strict = {**CHOICE, "min_confidence": 0.6, "coverage": 0.9}
        answers = made.decide(asking(MULTI, strict, NOUL, SCORE))["answers"]
    assert list(answers) == ["k0", "k1", "k2", "k3"]
    assert answers["k0"] == {
        "type": "multi",
        "selected": ["refund", "delay"],
        "probabilities": {"refund": 0.8, "delay": 0.8},
        "calibrated": False,
    }
    assert answers["k1"] == {
        "type": "choice",
        "choice": "billing",
        "probabilities": {"billing": 0.5, "access": 0.25, "none_of_these": 0.25},
        "confidence": 0.5,
        "abstain": True,
        "calibrated": False,
        "coverage": 0.9,
        "guaranteed": False,
    }
    assert answers["k3"] == {
        "type": "score",
        "score": 1.25,
        "probabilities": [0.25, 0.25, 0.5],
        "confidence": 0.5,
        "calibrated": False,
    }


def test_a_response_is_plain_json() -> None:
    with world(m=saying({"yes": 1, "no": 0}, value("é"), value(3))) as made:
        response = made.decide(asking(NOUL, TEXT, INTEGER))
        assert json.loads(json.dumps(response, allow_nan=False)) == response


@pytest.mark.parametrize(
    ("mode", "shown"), [("auto", "logprobs"), ("verbal", "verbal"), ("logprobs", "logprobs")]
)
def test_without_a_model_call_the_mode_is_the_one_asked_for(mode: str, shown: str) -> None:
    with world(m=failing(Refused())) as made:
        response = made.decide(asking({**NOUL, "when": {"x": 1}}, state={"x": 2}, mode=mode))
        assert (response["mode"], response["debiased"], response["cached"]) == (shown, False, False)
        assert (response["cost_usd"], response["latency_ms"]) == (0, 0)
        assert response["model"] == "@here/m"


def test_one_verbal_answer_makes_the_mode_verbal() -> None:
    later = {**NOUL, "depends_on": ["k0"]}
    broken_later = by_text("Earlier answers", babbling, yes(0.9))
    with world(m=in_mode(broken_later, yes(0.9))) as made:
        assert made.decide(asking(NOUL, later))["mode"] == "verbal"


def test_debiased_means_every_stage_that_had_an_order_was_asked_in_both() -> None:
    later = {**NOUL, "depends_on": ["k0"]}
    half = by_text("Earlier answers", in_order(yes(0.9), failing(Refused())), yes(0.9))
    with world(m=half) as made:
        assert made.decide(asking(NOUL, later))["debiased"] is False
    value_first = by_text("Earlier answers", yes(0.9), saying(value("Oslo")))
    with world(m=value_first) as made:
        assert made.decide(asking(TEXT, later))["debiased"] is True


def test_the_caller_may_have_answers_in_another_shape_and_that_is_stored() -> None:
    with world(m=yes(0.9)) as made:
        decision = made.engine.decide(
            load_decision(asking()),
            Deadline(30),
            api_key="key_1",
            present=lambda key, answer: answer.plus(key=key),
        )
        expected = {"type": "noul", "noul": 0.9, "calibrated": False, "key": "k0"}
        assert decision.response()["answers"]["k0"] == expected
        assert made.journal.records[0].answers["k0"].fields == expected
        assert made.journal.records[0].api_key == "key_1"


# --- what a request leaves open ---


def test_a_config_freezes_the_prompt_and_its_name_is_told() -> None:
    with world(m=yes(0.9)) as made:
        for config in (None, "svc-latest", "svc-1.2.0", "svc-1.0.0"):
            fields = {} if config is None else {"config": config}
            response = made.decide(asking(**fields))
            assert response["config"] == (NEWEST if config in (None, "svc-latest") else config)
        texts = [user_text(call) for call in made.client.calls_to("m")]
    beginnings = ["Question: "] * 4 + ["Questions:"] * 2 + ["Input:\ns\n"] * 2
    assert [text.startswith(words) for text, words in zip(texts, beginnings, strict=True)] == [
        True
    ] * 8


def test_fields_of_the_request_win_over_those_of_its_config() -> None:
    with world(m=yes(0.9), n=yes(0.2)) as made:
        fields = {"config": "svc-1.1.0", "model": "@here/n", "mode": "verbal", "debias": False}
        response = made.decide(asking(**fields))
        assert (response["model"], response["mode"]) == ("@here/n", "verbal")
        assert len(made.client.calls) == 1


@pytest.mark.parametrize(
    "model", ["@nowhere/m", "plain/m", ["@here/m", "@nowhere/m"], {"race": ["@here/m", "@x/y"]}]
)
def test_a_model_of_a_provider_that_is_not_configured_is_refused_before_any_call(
    model: Any,
) -> None:
    with world(m=yes(0.9)) as made:
        with pytest.raises(InvalidRequest, match="configured providers: here, there"):
            made.decide(asking(model=model))
        assert made.client.calls == []


# --- the bound of 64 calls ---


def staged(count: int, think: int = 0) -> list[dict[str, Any]]:
    """Questions in as many stages, and some of their own calls in the first."""
    chain = [
        {**NOUL, "instructions": f"{i}?", "depends_on": [f"k{i - 1}"] if i else []}
        for i in range(count)
    ]
    return chain + [{**NOUL, "instructions": f"deep {i}?", "think": True} for i in range(think)]


@pytest.mark.parametrize(
    ("questions", "members", "debias", "calls"),
    [
        (staged(8), 4, True, 64),
        (staged(8), 5, True, 80),
        (staged(8), 5, False, 40),
        (staged(8), 5, "auto", 80),
        (staged(1, think=31), 1, True, 64),
        (staged(1, think=32), 1, True, 66),
        (staged(1, think=32), 2, False, 66),
        ([{**TEXT, "instructions": f"{i}?", "think": True} for i in range(10)], 5, True, 50),
    ],
)
def test_a_plan_may_need_64_calls_and_no_more(
    questions: list[dict[str, Any]], members: int, debias: bool | str, calls: int
) -> None:
    model = [f"@here/m{i}" for i in range(members)]
    reply = yes(0.9) if questions[0]["type"] == "noul" else saying(value("Oslo"))
    with world(**{f"m{i}": reply for i in range(members)}) as made:
        body = asking(*questions, model={"council": model} if members > 1 else model, debias=debias)
        if calls <= 64:
            made.decide(body)
            assert len(made.client.calls) == calls
            return
        with pytest.raises(InvalidRequest, match=f"needs {calls} model calls, at most 64"):
            made.decide(body)
        assert made.client.calls == []


def test_running_out_of_calls_on_the_way_is_a_model_error() -> None:
    with world(m=in_mode(babbling, yes(0.9))) as made:
        with pytest.raises(ModelError):
            made.decide(asking(*staged(1, think=31), mode="auto"))
        assert len(made.client.calls) <= 64


# --- privacy ---


def test_strict_privacy_keeps_no_value_but_returns_it() -> None:
    with world(m=saying({"yes": 0.9, "no": 0.1}, value("Oslo"), value(41))) as made:
        response = made.decide(asking(NOUL, TEXT, INTEGER, privacy="strict"))
        assert response["answers"]["k1"]["value"] == "Oslo"
        (record,) = made.journal.records
        assert record.privacy == "strict"
        redacted = {**response["answers"]["k1"], "value": "[redacted]"}
        assert record.answers["k1"].fields == redacted
        assert record.answers["k0"].fields == response["answers"]["k0"]
        assert not re.search(r"Oslo|\b41\b", repr(record))


def test_standard_privacy_stores_what_it_returns() -> None:
    with world(m=saying(value("Oslo"))) as made:
        response = made.decide(asking(TEXT))
        stored = made.journal.records[0].answers
        assert {key: answer.fields for key, answer in stored.items()} == response["answers"]


@pytest.mark.parametrize("model", ["@there/m", ["@here/m", "@there/m"], {"race": ["@there/m"]}])
def test_strict_privacy_is_refused_for_a_hosted_named_provider(model: Any) -> None:
    with world(m=yes(0.9)) as made:
        with pytest.raises(InvalidRequest, match=r"privacy: strict.*'there'"):
            made.decide(asking(model=model, privacy="strict"))
        assert made.client.calls == []
        made.decide(asking(model=model))


# --- the record ---


def test_the_record_holds_hashes_of_the_state_and_the_images_and_never_themselves() -> None:
    with world(m=yes(0.9)) as made:
        made.decide(asking(state="my secret", images=[IMAGE]))
        (record,) = made.journal.records
        assert record.state_hash == hashlib.sha256(b"salt" + b"my secret").digest()
        assert record.images == (hashlib.sha256(b"salt" + IMAGE.encode()).digest(),)
        assert "my secret" not in repr(record)
        assert IMAGE not in repr(record)


def test_the_record_says_what_the_response_says() -> None:
    with world(m=yes(0.9)) as made:
        response = made.decide(asking(project="shop"))
        (record,) = made.journal.records
        assert {**record.response(), "id": "dec_1"} == response


def test_the_record_says_what_providers_call_their_models() -> None:
    with world(m=named("m-1 fp_1"), n=named("n-7"), o=yes(0.7)) as made:
        council = made.decision(asking(NOUL, model={"council": ["@here/m", "@here/n", "@here/o"]}))
        alone = made.decision(asking(NOUL, model="@here/o"))
    assert council.provider_models == "m-1 fp_1, n-7"
    assert alone.provider_models is None


def test_a_provider_with_many_names_for_its_model_fills_little_with_them() -> None:
    calls = count()

    def model(name: str, call: ChatCall) -> Completion:
        return named(f"{next(calls)}{'m' * 400}")(name, call)

    council = {"council": [f"@here/{name}" for name in "abcde"]}
    with world(**dict.fromkeys("abcde", model)) as made:
        record = made.decision(asking(NOUL, model=council))
    assert record.provider_models is not None
    assert 400 < len(record.provider_models) <= limits.PROVIDER_NAMES_CHARS


def test_two_orders_that_were_answered_by_two_versions_name_both() -> None:
    with world(m=in_order(named("m-1"), named("m-2"))) as made:
        assert made.decision(asking(NOUL)).provider_models == "m-1, m-2"
        assert made.decision(asking(NOUL, debias=False)).provider_models == "m-1"


def test_without_a_model_call_nobody_called_it_anything() -> None:
    with world() as made:
        skipped = {**NOUL, "when": {"plan": "pro"}}
        assert made.decision(asking(skipped, state={"plan": "free"})).provider_models is None


def test_the_record_has_raw_readings_of_what_models_answered_alone() -> None:
    ruled = {**NOUL, "rules": [{"if": {"x": 1}, "answer": True}]}
    skipped = {**NOUL, "when": {"x": 2}}
    with world(m=yes(0.9)) as made:
        made.decide(asking(NOUL, ruled, skipped, state={"x": 1}))
        readings = {one.key: one.reading for one in made.journal.records[0].questions}
        kept = {"p": [pytest.approx(0.9)], "mass": 1.0, "by": "@here/m logprobs"}
        assert readings == {"k0": kept, "k1": None, "k2": None}


def test_the_exact_question_is_kept_with_its_wording() -> None:
    with world(m=yes(0.9)) as made:
        made.decide(asking())
        (asked,) = made.journal.records[0].questions
        assert json.loads(asked.definition) == {"type": "noul", "instructions": "Is it urgent?"}
        assert asked.digest == hashlib.sha256(asked.definition.encode()).digest()


class FullDisk:
    """A journal that takes no record."""

    def add(self, decision: Decision) -> str:
        raise StorageError("the decision could not be stored")


def test_a_decision_that_cannot_be_stored_is_not_answered() -> None:
    with world(m=yes(0.9)) as made:
        made.engine._journal = FullDisk()
        with pytest.raises(StorageError):
            made.decide(asking())


def test_a_deadline_that_passed_before_the_first_call_stores_nothing() -> None:
    with world(m=yes(0.9)) as made:
        with pytest.raises(Timeout):
            made.decide(asking(), 0)
        assert made.journal.records == []


def test_a_deadline_that_passes_while_answering_stores_nothing() -> None:
    now = [0.0]

    def late(name: str, call: Any) -> Any:
        now[0] = 200.0
        return yes(0.9)(name, call)

    with world(m=late) as made:
        with pytest.raises(Timeout):
            made.engine.decide(load_decision(asking()), Deadline(120, lambda: now[0]))
        assert made.journal.records == []


def test_a_deadline_that_passes_after_the_last_call_stores_nothing() -> None:
    now = [0.0]

    def slowly(_key: str, answer: Answer) -> Answer:
        now[0] = 200.0
        return answer

    with world(m=yes(0.9)) as made:
        with pytest.raises(Timeout):
            made.engine.decide(
                load_decision(asking()), Deadline(120, lambda: now[0]), present=slowly
            )
        assert made.journal.records == []


def test_a_decision_leaves_no_thread_behind_when_the_engine_stops() -> None:
    before = threading.active_count()
    made = World({"m": yes(0.9)})
    made.decide(asking())
    made.close()
    assert threading.active_count() == before
