from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from svc.engine.ask import Ledger
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
    asking,
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


# --- the deadline and the ledger ---


def test_a_model_that_outlasts_the_deadline_is_a_timeout() -> None:
    held = Held(yes(0.8))
    with world(m=held) as made:
        with pytest.raises(Timeout):
            made.decide(asking(NOUL), 0.1)
        held.let_go.set()


def test_calls_beyond_the_ledger_are_refused_and_those_within_it_pass() -> None:
    ledger = Ledger(3)
    ledger.spend(2)
    with pytest.raises(ModelError, match="ran out"):
        ledger.spend(2)
    ledger.spend(1)
    assert ledger.left == 0


def test_threads_never_spend_more_than_there_is() -> None:
    ledger, refused = Ledger(500), []

    def spend(_: int) -> None:
        try:
            ledger.spend(1)
        except ModelError:
            refused.append(1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(spend, range(800)))
    assert (ledger.left, len(refused)) == (0, 300)


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
