from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from svc.engine.ask import CallAllowance
from svc.errors import InternalError, ModelError, ModelUnavailable, Timeout
from svc.providers.failures import BadReply, Gone, NoLogprobs, Refused, ServerTrouble
from svc.providers.quirks import NO_LOGPROBS
from svc.providers.replies import Completion, Token
from tests.engine.fakes import Answerer, World, answering, failing, users, world
from tests.engine.models import (
    CHOICE,
    INTEGER,
    NOUL,
    SCORE,
    TEXT,
    Held,
    babbling,
    in_mode,
    in_order,
    is_reversed,
    reasons_first,
    saying,
    user_text,
    value,
    yes,
)
from tests.preferring import PreferringModel

TWO = {**CHOICE, "options": {"a": "", "b": ""}, "escape": False}
MANY = {**CHOICE, "options": {f"intent_{i}": "" for i in range(21)}}


def asking(*questions: dict[str, Any], state: Any = "s", **fields: Any) -> dict[str, Any]:
    return {"state": state, "questions": {f"k{i}": q for i, q in enumerate(questions)}, **fields}


def modes(made: World) -> list[bool]:
    """Of each call, whether it asked for log-probabilities."""
    return [call.logprobs for _, call in made.client.calls]


def without_alternatives(_name: str, call: Any) -> Completion:
    """A model that gives log-probabilities, but of its own tokens alone."""
    return Completion("yes", (Token("yes", 0.0, ()),), input_tokens=10)


# --- option orders ---


def test_both_orders_are_asked_and_averaged() -> None:
    with world(m=answering(PreferringModel(first_bonus=3.0))) as made:
        response = made.decide(asking(TWO))
        assert response["answers"]["k0"]["probabilities"] == {"a": 0.5, "b": 0.5}
        assert response["debiased"] is True
        assert sorted(
            is_reversed(call) or "A. b" in user_text(call) for _, call in made.client.calls
        ) == [
            False,
            True,
        ]


def test_both_orders_are_under_way_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def met(name: str, call: Any) -> Completion:
        meeting.wait(10)
        return yes(0.9)(name, call)

    with world(m=met) as made:
        assert made.decide(asking(NOUL))["debiased"] is True


def test_without_debias_only_the_original_order_is_asked() -> None:
    with world(m=answering(PreferringModel(first_bonus=3.0))) as made:
        response = made.decide(asking(TWO, debias=False))
        assert response["answers"]["k0"]["probabilities"] == {"a": 0.75, "b": 0.25}
        assert response["debiased"] is False
        assert len(made.client.calls) == 1


@pytest.mark.parametrize(
    "trouble", [failing(Refused()), failing(Gone()), babbling, failing(ZeroDivisionError())]
)
@pytest.mark.parametrize("original_fails", [True, False])
@pytest.mark.parametrize("mode", ["auto", "logprobs", "verbal"])
def test_when_one_order_fails_the_other_counts(
    trouble: Answerer, original_fails: bool, mode: str
) -> None:
    orders = (trouble, yes(0.7)) if original_fails else (yes(0.7), trouble)
    with world(m=in_order(*orders)) as made:
        response = made.decide(asking(NOUL, mode=mode))
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.7)
        assert response["debiased"] is False
        assert len(made.client.calls) == 2


@pytest.mark.parametrize("debias", [True, "auto", False])
def test_extraction_alone_has_no_order_to_reverse(debias: bool | str) -> None:
    with world(m=saying(value("Oslo"), value(3))) as made:
        response = made.decide(asking(TEXT, INTEGER, debias=debias))
        assert response["debiased"] is False
        assert len(made.client.calls) == 1


def test_extraction_beside_labels_is_asked_in_both_orders() -> None:
    both = in_order(
        saying({"yes": 0.9, "no": 0.1}, value("Oslo", 0.9)),
        saying({"yes": 0.7, "no": 0.3}, value("Rome", 0.6)),
    )
    with world(m=both) as made:
        response = made.decide(asking(NOUL, TEXT))
        assert response["debiased"] is True
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.8)
        assert response["answers"]["k1"] == {
            "value": "Oslo",
            "confidence": 0.6,
            "calibrated": False,
        }


# --- debias: "auto" ---


def states(made: World, numbers: range, **fields: Any) -> list[bool]:
    """Of each decision, whether it was debiased."""
    return [
        made.decide(asking(NOUL, state=i, debias="auto", **fields))["debiased"] for i in numbers
    ]


def test_auto_leaves_the_reversed_order_out_once_20_pairs_agreed() -> None:
    with world(m=yes(0.9)) as made:
        assert states(made, range(20)) == [True] * 20
        assert states(made, range(40)) == ([False] * 9 + [True]) * 4
        assert len(made.client.calls) == 20 * 2 + 36 + 4 * 2


def test_auto_goes_on_in_both_orders_where_they_disagree() -> None:
    with world(m=in_order(yes(0.9), yes(0.3))) as made:
        assert states(made, range(30)) == [True] * 30


def test_cached_pairs_do_not_teach() -> None:
    with world(100, m=yes(0.9)) as made:
        states(made, range(19))
        states(made, range(19))
        assert states(made, range(19, 21)) == [True, False]


def test_a_pair_of_which_one_order_failed_does_not_teach() -> None:
    with world(m=in_order(yes(0.9), failing(Refused()))) as made:
        states(made, range(25))
        assert len(made.client.calls) == 50


def test_what_auto_learnt_is_of_one_model() -> None:
    with world(m=yes(0.9), n=yes(0.9)) as made:
        states(made, range(20))
        assert states(made, range(1), model="@here/n") == [True]
        assert states(made, range(1)) == [False]


# --- modes ---


def test_auto_asks_for_label_probabilities_first() -> None:
    with world(m=yes(0.9)) as made:
        assert made.decide(asking(NOUL))["mode"] == "logprobs"
        assert modes(made) == [True, True]


@pytest.mark.parametrize(
    "first", [without_alternatives, failing(NoLogprobs()), failing(BadReply())]
)
def test_auto_falls_back_to_verbal_where_there_are_none(first: Answerer) -> None:
    with world(m=in_mode(first, yes(0.8))) as made:
        response = made.decide(asking(NOUL))
        assert response["mode"] == "verbal"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.8)
        assert modes(made) == [True, True, False, False]


def test_a_model_without_label_probabilities_is_remembered_by_its_full_id() -> None:
    with world(m=in_mode(without_alternatives, yes(0.8)), n=yes(0.8)) as made:
        made.decide(asking(NOUL))
        made.client.calls.clear()
        assert made.decide(asking(NOUL))["mode"] == "verbal"
        assert modes(made) == [False, False]
        assert made.decide(asking(NOUL, model="@here/n"))["mode"] == "logprobs"
        assert NO_LOGPROBS in made.client.quirks.of("@here/m")


def test_a_broken_format_is_not_remembered() -> None:
    with world(m=in_mode(babbling, yes(0.8))) as made:
        made.decide(asking(NOUL))
        made.client.calls.clear()
        made.decide(asking(NOUL))
        assert modes(made) == [True, True, False, False]


def test_a_fallback_costs_what_both_modes_cost() -> None:
    with world(m=in_mode(babbling, yes(0.8))) as made:
        decision = made.decision(asking(NOUL))
        assert decision.response["cost_usd"] == 0.004
        assert decision.input_tokens == 40


@pytest.mark.parametrize("first", [without_alternatives, babbling, failing(NoLogprobs())])
def test_mode_logprobs_never_falls_back(first: Answerer) -> None:
    with world(m=in_mode(first, yes(0.8))) as made:
        with pytest.raises(ModelError):
            made.decide(asking(NOUL, mode="logprobs"))
        assert modes(made) == [True, True]


def test_mode_logprobs_is_asked_for_even_of_a_model_that_had_none() -> None:
    with world(m=yes(0.8)) as made:
        made.client.quirks.refuse("@here/m", NO_LOGPROBS)
        assert made.decide(asking(NOUL, mode="logprobs"))["mode"] == "logprobs"


def test_mode_verbal_never_asks_for_label_probabilities() -> None:
    with world(m=yes(0.8)) as made:
        assert made.decide(asking(NOUL, mode="verbal"))["mode"] == "verbal"
        assert modes(made) == [False, False]


@pytest.mark.parametrize("needy", [TEXT, INTEGER, MANY])
def test_a_stage_with_a_verbal_question_is_asked_verbally_as_a_whole(needy: dict[str, Any]) -> None:
    member = value(3) if needy is not MANY else [{"label": "B", "probability": 0.9}]
    with world(m=saying({"yes": 0.9, "no": 0.1}, member)) as made:
        assert made.decide(asking(NOUL, needy))["mode"] == "verbal"
        assert not any(modes(made))


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Gone(), ModelUnavailable), (ServerTrouble(), ModelError), (Refused(), ModelError)],
)
def test_trouble_that_another_mode_would_meet_too_ends_the_asking(
    error: Exception, kind: type[Exception]
) -> None:
    with world(m=failing(error)) as made:
        with pytest.raises(kind):
            made.decide(asking(NOUL, debias=False))
        assert all(modes(made))


def test_an_unforeseen_failure_is_an_internal_error_without_its_words() -> None:
    with world(m=failing(ZeroDivisionError("secret"))) as made:
        with pytest.raises(InternalError) as error:
            made.decide(asking(NOUL))
        assert "secret" not in error.value.message


def test_an_unreadable_verbal_reply_is_an_error_and_no_guess() -> None:
    with world(m=saying({"yes": 0.0, "no": 0.0})) as made, pytest.raises(ModelError):
        made.decide(asking(NOUL, mode="verbal"))


def test_an_unreadable_reply_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    secret = lambda _name, _call: Completion("sesame", (Token("sesame", 0.0, ()),))  # noqa: E731
    with world(m=secret) as made, pytest.raises(ModelError):
        made.decide(asking(NOUL))
    assert "@here/m" in caplog.text
    assert "sesame" not in caplog.text


# --- thinking, privacy, many options ---


def test_thinking_is_verbal_with_room_for_it() -> None:
    with world(m=yes(0.8)) as made:
        plain = made.decide(asking(NOUL, mode="verbal"))
        (_, usual), *_ = made.client.calls
        made.client.calls.clear()
        thinking = made.decide(asking(NOUL, think=True))
        assert (plain["mode"], thinking["mode"]) == ("verbal", "verbal")
        for _, call in made.client.calls:
            assert call.think
            assert not call.logprobs
            assert reasons_first(call)
            assert '"reasoning": ' in user_text(call)
            assert call.max_tokens == usual.max_tokens + 1024
        assert not usual.think
        assert not reasons_first(usual)


@pytest.mark.parametrize(("privacy", "deny"), [("strict", True), ("standard", False)])
def test_strict_privacy_denies_data_collection(privacy: str, deny: bool) -> None:
    with world(m=yes(0.8)) as made:
        made.decide(asking(NOUL, privacy=privacy))
        assert {call.deny_data_collection for _, call in made.client.calls} == {deny}


def test_over_20_options_every_option_has_a_probability_of_five_labels() -> None:
    top = [
        {"label": label, "probability": p}
        for label, p in zip("BACDE", [0.6, 0.1, 0.1, 0.1, 0.05], strict=True)
    ]
    with world(m=in_order(saying(top), saying([{**top[0], "label": "U"}, *top[1:]]))) as made:
        answer = made.decide(asking(MANY))["answers"]["k0"]
        assert answer["choice"] == "intent_1"  # B from the top is the last but one reversed
        assert len(answer["probabilities"]) == 22
        assert sum(answer["probabilities"].values()) == pytest.approx(1.0, abs=1e-9)


# --- the cache ---


def test_an_equal_request_is_answered_from_the_cache() -> None:
    with world(10, m=yes(0.8)) as made:
        first, second = made.decide(asking(NOUL)), made.decide(asking(NOUL))
        assert (first["cached"], second["cached"]) == (False, True)
        assert first["cost_usd"] == 0.002
        assert (second["cost_usd"], second["latency_ms"]) == (0, 0)
        assert second["answers"] == first["answers"]
        assert (second["debiased"], second["mode"]) == (True, "logprobs")
        assert len(made.client.calls) == 2


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


# --- the deadline and the allowance ---


def test_a_model_that_outlasts_the_deadline_is_a_timeout() -> None:
    held = Held(yes(0.8))
    with world(m=held) as made:
        with pytest.raises(Timeout):
            made.decide(asking(NOUL), 0.1)
        held.let_go.set()


def test_calls_beyond_the_allowance_are_refused_and_those_within_it_pass() -> None:
    allowance = CallAllowance(3)
    allowance.spend(2)
    with pytest.raises(ModelError, match="ran out"):
        allowance.spend(2)
    allowance.spend(1)
    assert allowance.left == 0


def test_threads_never_spend_more_than_there_is() -> None:
    allowance, refused = CallAllowance(500), []

    def spend(_: int) -> None:
        try:
            allowance.spend(1)
        except ModelError:
            refused.append(1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(spend, range(800)))
    assert (allowance.left, len(refused)) == (0, 300)


def test_examples_carry_the_letter_of_their_label_in_both_orders() -> None:
    examples = [
        {"state": "card\nlost", "label": "access"},
        {"state": {"n": 1}, "label": "none_of_these"},
    ]
    levels = {**SCORE, "examples": [{"state": "all down", "label": 2}]}
    sure = {**NOUL, "examples": [{"state": "asap", "label": True}]}
    with world() as made:
        made.decide(asking({**CHOICE, "examples": examples}, levels, sure))
        original, backwards = sorted(
            users([c for _, c in made.client.calls]), key=lambda t: "no or yes" in t
        )
    assert "Example input: card lost\nExample answer: B\n" in original
    assert 'Example input: {"n":1}\nExample answer: C\n' in original
    assert "Example input: all down\nExample answer: C\n" in original
    assert "Example input: card lost\nExample answer: B\n" in backwards
    assert 'Example input: {"n":1}\nExample answer: A\n' in backwards
    assert "Example input: all down\nExample answer: A\n" in backwards
    for text in (original, backwards):
        assert "Example input: asap\nExample answer: yes\n" in text


def test_examples_of_values_show_the_value_as_json() -> None:
    examples = [{"state": "to Oslo", "label": "Oslo"}, {"state": "hello", "label": None}]
    with world(m=saying(value("Rome"))) as made:
        made.decide(asking({**TEXT, "nullable": True, "examples": examples}))
        (text,) = users(made.client.asked("m"))
    assert 'Example input: to Oslo\nExample answer: "Oslo"\n' in text
    assert "Example input: hello\nExample answer: null\n" in text


def test_images_go_with_the_message() -> None:
    images = ["https://a.example/1.png", "data:image/png;base64,AAAA"]
    with world(m=yes(0.8)) as made:
        made.decide(asking(NOUL, images=images))
        for _, call in made.client.calls:
            text, *pictures = call.messages[-1]["content"]
            assert text["type"] == "text"
            assert pictures == [{"type": "image_url", "image_url": {"url": url}} for url in images]
