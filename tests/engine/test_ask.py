from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from svc import limits
from svc.engine.ask import Ledger
from svc.engine.attempt import HIDDEN_TOKENS, JSON_ROOM, LABEL_ROOM
from svc.errors import InternalError, ModelError, ModelUnavailable, RateLimited, Timeout
from svc.providers.bodies import JSON_OBJECT, JSON_SCHEMA, ChatCall
from svc.providers.failures import (
    BadReply,
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.replies import Completion, Token
from svc.providers.traits import FIRST_RETRY, MISSES, Reason, Rung, asked_by
from tests.engine.fakes import Answerer, World, answering, failing, users, world
from tests.engine.models import (
    CHOICE,
    INTEGER,
    MULTI,
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
CHOICE_BY_YES = {**NOUL, "instructions": "Is it polite?"}  # a second question for `yes`
MANY = {**CHOICE, "options": {f"intent_{i}": "" for i in range(21)}}

M = asked_by("default", "@here/m")


def modes(made: World) -> list[bool]:
    """Of each call, whether it asked for log-probabilities."""
    return [call.logprobs for _, call in made.client.calls]


def asked(made: World) -> list[str]:
    """Of each call, how the model was asked: `lines`, `label`, or the format of its JSON reply."""

    def way(call: ChatCall) -> str:
        if call.logprobs:
            return "lines" if "lines and nothing else" in user_text(call) else "label"
        return call.reply_format or "words"

    return [way(call) for _, call in made.client.calls]


def told(made: World, **fields: Any) -> str:
    """The message of the error that a request ends in."""
    with pytest.raises(ModelError) as error:
        made.decide(asking(NOUL, **fields))
    return error.value.message


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
            "type": "text",
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


def test_auto_corrects_one_order_once_40_pairs_showed_what_the_other_would_have_said() -> None:
    with world(m=in_order(yes(0.9), yes(0.3))) as made:
        assert states(made, range(40)) == [True] * 40
        answers = [made.decide(asking(NOUL, state=i, debias="auto")) for i in range(40, 49)]
        assert [one["debiased"] for one in answers] == [False] * 9
        # The mean of 0.9 and of 0.3, which was not asked.
        assert [one["answers"]["k0"]["noul"] for one in answers] == [pytest.approx(0.6)] * 9
        assert states(made, range(49, 59)) == [True] + [False] * 9
        assert len(made.client.calls) == 40 * 2 + 9 + 2 + 9


def test_what_one_mode_taught_says_nothing_of_another() -> None:
    with world(m=in_mode(in_order(yes(0.9), yes(0.3)), yes(0.9))) as made:
        states(made, range(40))
        words = {"state": "x", "debias": "auto", "mode": "verbal"}
        decided = made.decide(asking(NOUL, **words))
        assert decided["debiased"]
        assert decided["answers"]["k0"]["noul"] == pytest.approx(0.9)
        assert states(made, range(40, 41)) == [False]


def test_without_debias_nothing_is_corrected() -> None:
    with world(m=in_order(yes(0.9), yes(0.3))) as made:
        states(made, range(40))
        decided = made.decide(asking(NOUL, state="x", debias=False))
        assert decided["answers"]["k0"]["noul"] == pytest.approx(0.9)


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


def test_what_a_project_had_a_model_answer_teaches_nothing_about_another_project() -> None:
    with world(m=in_order(yes(0.97), yes(0.03))) as made:
        states(made, range(40), project="hostile")
        assert states(made, range(40, 41), project="hostile") == [False]
        assert states(made, range(41, 42)) == [True]


# --- modes ---


def test_answers_that_a_project_had_a_model_give_take_no_mode_from_another_project() -> None:
    def talked_to(name: str, call: ChatCall) -> Completion:
        return babbling(name, call) if call.logprobs else yes(0.9)(name, call)

    with world(m=talked_to) as made:
        for number in range(MISSES + 1):
            made.decide(asking(NOUL, state=number, project="hostile"))
        made.client.answerers["m"] = yes(0.9)
        assert made.decide(asking(NOUL, state="y", project="hostile"))["mode"] == "verbal"
        assert made.decide(asking(NOUL, state="x"))["mode"] == "logprobs"


def test_auto_asks_for_label_probabilities_first() -> None:
    with world(m=yes(0.9)) as made:
        assert made.decide(asking(NOUL))["mode"] == "logprobs"
        assert modes(made) == [True, True]


@pytest.mark.parametrize("first", [babbling, failing(NoLogprobs()), failing(BadReply())])
def test_auto_falls_back_to_verbal_where_there_are_none(first: Answerer) -> None:
    with world(m=in_mode(first, yes(0.8))) as made:
        response = made.decide(asking(NOUL))
        assert response["mode"] == "verbal"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.8)
        assert asked(made) == ["label", "label", JSON_SCHEMA, JSON_SCHEMA]


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (failing(NoLogprobs()), Reason.NO_PROBABILITIES),
        (babbling, Reason.UNREADABLE),
        (failing(BadReply()), Reason.UNREADABLE),
    ],
)
def test_what_a_model_cannot_do_is_remembered_by_its_full_id(
    first: Answerer, reason: Reason
) -> None:
    with world(m=in_mode(first, yes(0.8)), n=yes(0.8)) as made:
        made.decide(asking(NOUL))
        made.client.calls.clear()
        assert made.decide(asking(NOUL))["mode"] == "verbal"
        assert asked(made) == [JSON_SCHEMA, JSON_SCHEMA]
        assert made.decide(asking(NOUL, model="@here/n"))["mode"] == "logprobs"
        labels = made.client.traits.of(M).labels
        assert (labels.index, labels.reason) == (2, reason)


def test_a_fallback_costs_what_both_modes_cost() -> None:
    with world(m=in_mode(babbling, yes(0.8))) as made:
        decision = made.decision(asking(NOUL))
        assert decision.cost_usd == 0.004
        assert decision.input_tokens == 40


@pytest.mark.parametrize("first", [babbling, failing(NoLogprobs())])
def test_mode_logprobs_never_falls_back_to_json(first: Answerer) -> None:
    with world(m=in_mode(first, yes(0.8))) as made:
        with pytest.raises(ModelError):
            made.decide(asking(NOUL, mode="logprobs"))
        assert asked(made) == ["label", "label"]
        assert made.client.traits.of(M).labels == Rung()


def test_mode_logprobs_is_asked_for_even_of_a_model_that_had_none() -> None:
    with world(m=yes(0.8)) as made:
        made.client.traits.change(M, lambda traits: replace(traits, labels=Rung(2)))
        assert made.decide(asking(NOUL, mode="logprobs"))["mode"] == "logprobs"
        assert made.client.traits.of(M).labels == Rung(1, proven=1 << 1)


# --- the ladders ---


def one_label_a_call(name: str, call: ChatCall) -> Completion:
    """A model that answers a single label but never several lines."""
    lines = "lines and nothing else" in user_text(call)
    return (babbling if lines else answering(PreferringModel(yes=0.8)))(name, call)


def in_format(*formats: str) -> Answerer:
    """A model that gives no log-probabilities, and takes these formats of reply alone."""

    def answer(name: str, call: ChatCall) -> Completion:
        if call.logprobs:
            raise NoLogprobs
        if call.reply_format not in formats:
            raise FormatRefused
        return yes(0.8)(name, call)

    return answer


def test_several_labels_are_asked_for_in_one_call() -> None:
    with world() as made:
        made.decide(asking(NOUL, CHOICE, MULTI, debias=False))
        assert asked(made) == ["lines"]


def test_a_model_that_cannot_keep_lines_is_asked_for_each_label_alone() -> None:
    with world(m=one_label_a_call) as made:
        response = made.decide(asking(NOUL, CHOICE, MULTI, debias=False))
        assert response["mode"] == "logprobs"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.8)
        assert response["answers"]["k2"]["probabilities"] == pytest.approx(
            {"refund": 0.8, "delay": 0.8}
        )
        assert asked(made) == ["lines"] + ["label"] * 4
        made.client.calls.clear()
        made.decide(asking(NOUL, CHOICE, debias=False))
        assert asked(made) == ["label"] * 2


def test_each_label_alone_is_asked_for_in_both_orders() -> None:
    with world(m=one_label_a_call) as made:
        response = made.decide(asking(NOUL, TWO))
        assert response["debiased"] is True
        assert asked(made) == ["lines"] * 2 + ["label"] * 4


def test_requests_of_one_label_do_not_bring_back_lines_that_never_worked() -> None:
    with world(m=one_label_a_call) as made:
        for number in range(FIRST_RETRY // 2):
            made.client.calls.clear()
            made.decide(asking(NOUL, state=number))
            assert asked(made) == ["label"] * 2
            made.client.calls.clear()
            made.decide(asking(NOUL, TWO, state=number))
            assert asked(made) == (["lines"] * 2 if number == 0 else []) + ["label"] * 4


def test_requests_of_one_label_do_not_give_up_lines_that_work() -> None:
    with world() as made:
        for number in range(4):
            made.client.calls.clear()
            made.decide(asking(NOUL, state=number, debias=False))
            made.decide(asking(NOUL, TWO, state=number, debias=False))
            assert asked(made) == ["label", "lines"]


def test_without_log_probabilities_in_one_call_they_are_not_asked_for_in_many() -> None:
    with world(m=in_format(JSON_SCHEMA)) as made:
        response = made.decide(asking(NOUL, CHOICE_BY_YES, debias=False))
        assert (response["mode"], asked(made)) == ("verbal", ["lines", JSON_SCHEMA])
        labels = made.client.traits.of(M).labels
        assert (labels.index, labels.reason) == (2, Reason.NO_PROBABILITIES)
        made.client.calls.clear()
        made.decide(asking(NOUL, CHOICE_BY_YES, debias=False))
        assert asked(made) == [JSON_SCHEMA]


def test_mode_logprobs_fails_at_once_where_one_call_shows_that_there_are_none() -> None:
    with world(m=failing(NoLogprobs())) as made:
        with pytest.raises(ModelError, match="gives no log-probabilities"):
            made.decide(asking(NOUL, TWO, mode="logprobs", debias=False))
        assert asked(made) == ["lines"]


def test_a_question_asked_alone_is_shown_without_the_others() -> None:
    with world(m=one_label_a_call) as made:
        made.decide(asking(NOUL, CHOICE, debias=False))
        texts = users(made.client.calls_to("m"))[1:]
    assert ["urgent" in text for text in texts] == [True, False]
    assert ["Which team" in text for text in texts] == [False, True]


def test_one_label_is_never_asked_for_as_lines() -> None:
    with world() as made:
        made.decide(asking({**MULTI, "options": {"only": ""}}, debias=False))
        assert asked(made) == ["label"]


@pytest.mark.parametrize(
    ("takes", "tried"),
    [
        ((JSON_SCHEMA,), [JSON_SCHEMA]),
        ((JSON_OBJECT,), [JSON_SCHEMA, JSON_OBJECT]),
        (("",), [JSON_SCHEMA, JSON_OBJECT, "words"]),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "verbal"])
def test_json_is_bound_to_a_schema_where_the_model_takes_one(
    takes: tuple[str, ...], tried: list[str], mode: str
) -> None:
    with world(m=in_format(*takes)) as made:
        response = made.decide(asking(NOUL, mode=mode, debias=False))
        assert response["mode"] == "verbal"
        assert asked(made) == (["label"] if mode == "auto" else []) + tried
        made.client.calls.clear()
        made.decide(asking(NOUL, mode=mode, debias=False))
        assert asked(made) == tried[-1:]


@pytest.mark.parametrize(("mode", "calls"), [("auto", 4), ("logprobs", 1), ("verbal", 3)])
def test_a_model_that_cannot_be_asked_at_all_is_asked_in_every_way_once(
    mode: str, calls: int
) -> None:
    with world(m=babbling) as made:
        assert told(made, mode=mode, debias=False).startswith("model '@here/m': ")
        assert len(made.client.calls) == calls


def test_ways_that_failed_are_not_remembered_where_none_worked() -> None:
    with world(m=babbling) as made:
        for _ in range(2):
            told(made, debias=False)
        assert len(made.client.calls) == 2 * 4


def test_lines_that_have_worked_are_given_up_after_three_failures_in_a_row() -> None:
    odd = {"on": False}

    def moody(name: str, call: ChatCall) -> Completion:
        return (one_label_a_call if odd["on"] else answering(PreferringModel()))(name, call)

    def ask() -> list[str]:
        made.client.calls.clear()
        made.decide(asking(NOUL, CHOICE, debias=False))
        return asked(made)

    with world(m=moody) as made:
        assert ask() == ["lines"]
        odd["on"] = True
        assert [ask()[0] for _ in range(MISSES + 1)] == ["lines"] * MISSES + ["label"]


def test_the_best_way_is_tried_again_after_a_while_and_taken_up_where_it_works() -> None:
    refusing = {"on": True}

    def changing(name: str, call: ChatCall) -> Completion:
        if call.logprobs and refusing["on"]:
            raise NoLogprobs
        return yes(0.8)(name, call)

    with world(m=changing) as made:
        for _ in range(FIRST_RETRY):
            made.decide(asking(NOUL, debias=False))
        assert asked(made) == ["label"] + [JSON_SCHEMA] * FIRST_RETRY
        refusing["on"] = False
        made.client.calls.clear()
        assert made.decide(asking(NOUL, debias=False))["mode"] == "logprobs"
        assert made.decide(asking(NOUL, debias=False))["mode"] == "logprobs"
        assert asked(made) == ["label", "label"]


def test_one_label_a_call_is_not_begun_where_the_requests_calls_do_not_suffice() -> None:
    topics = [
        {**MULTI, "instructions": f"Topics {n}?", "options": {f"o{n}_{i}": "" for i in range(20)}}
        for n in range(limits.MODEL_CALLS // 20 + 1)
    ]
    with world(m=one_label_a_call) as made:
        with pytest.raises(ModelError) as error:
            made.decide(asking(*topics, mode="logprobs", debias=False))
        assert asked(made) == ["lines"]
        needed = 20 * len(topics)
        assert f"takes {needed} calls" in error.value.message
        assert f"where {limits.MODEL_CALLS - 1} are left" in error.value.message


def test_a_request_without_the_calls_for_each_label_goes_on_to_json() -> None:
    topics = [
        {**MULTI, "instructions": f"Topics {n}?", "options": {f"o{n}_{i}": "" for i in range(20)}}
        for n in range(limits.MODEL_CALLS // 20 + 1)
    ]
    with world(m=one_label_a_call) as made:
        response = made.decide(asking(*topics, debias=False))
        assert (response["mode"], asked(made)) == ("verbal", ["lines", JSON_SCHEMA])
        assert made.client.traits.of(M).labels.index == 1


def topics(count: int) -> dict[str, Any]:
    """A question with as many labels as it has options."""
    return {**MULTI, "options": {f"o{number}": "" for number in range(count)}}


@pytest.mark.parametrize(("labels", "way"), [(32, "label"), (33, JSON_SCHEMA)])
def test_one_model_of_several_takes_no_more_than_its_share_for_a_call_a_label(
    labels: int, way: str
) -> None:
    with world(m=one_label_a_call, n=yes(0.8)) as made:
        wanted = [topics(20), {**topics(labels - 20), "instructions": "Which others?"}]
        made.decide(asking(*wanted, model=["@here/m", "@here/n"], debias=False))
        assert limits.MODEL_CALLS // 2 == 32
        assert asked(made)[:2] == ["lines", way]
        assert not made.client.calls_to("n")


def test_both_orders_count_towards_the_share() -> None:
    with world(m=one_label_a_call, n=yes(0.8)) as made:
        made.decide(asking(topics(17), model=["@here/m", "@here/n"]))
        assert asked(made) == ["lines"] * 2 + [JSON_SCHEMA] * 2


def test_mode_logprobs_says_how_many_calls_it_takes_and_are_left_of_a_share() -> None:
    with world(m=one_label_a_call, n=failing(Refused())) as made:
        body = asking(topics(17), model=["@here/m", "@here/n"], mode="logprobs")
        with pytest.raises(ModelError, match="takes 34 calls here where 32 are left"):
            made.decide(body)


def test_a_ledgers_share_is_what_each_of_its_models_may_take() -> None:
    assert [Ledger(64, models).share for models in (1, 2, 3, 64, 65)] == [64, 32, 21, 1, 0]
    assert Ledger(64).share == Ledger(64, 0).share == 64


# --- room for thought ---


class Thinking:
    """A model that thinks for `thought` tokens before it answers, and is cut below that."""

    def __init__(self, then: Answerer, thought: int = 1_500, empty: bool = True) -> None:
        self.then, self.thought, self.empty = then, thought, empty

    def __call__(self, name: str, call: ChatCall) -> Completion:
        if call.max_tokens >= self.thought:
            return self.then(name, call)
        if self.empty:
            raise Cut
        begun = (Token("<think>", -0.1, (("<think>", -0.1), ("x", -3.0))),)
        return Completion("<think>I wonder", begun, input_tokens=10, cut=True)


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize(("mode", "room"), [("logprobs", LABEL_ROOM), ("verbal", JSON_ROOM)])
def test_a_reply_that_thought_cut_off_is_asked_for_once_more_with_room(
    mode: str, room: int, empty: bool
) -> None:
    with world(m=Thinking(yes(0.8), 1_500 if mode == "logprobs" else 5_000, empty)) as made:
        response = made.decide(asking(NOUL, mode=mode, debias=False))
        assert (response["mode"], response["answers"]["k0"]["noul"]) == (mode, pytest.approx(0.8))
        first, second = (call.max_tokens for _, call in made.client.calls)
        assert first < 1_500
        assert second == room
        assert made.client.traits.of(M).thinks
        made.client.calls.clear()
        made.decide(asking(NOUL, mode=mode, debias=False))
        assert [call.max_tokens for _, call in made.client.calls] == [room]


def test_only_the_orders_that_were_cut_are_asked_again() -> None:
    with world(m=in_order(failing(BadReply()), Thinking(yes(0.8)))) as made:
        response = made.decide(asking(NOUL, mode="logprobs"))
        assert response["debiased"] is False
        assert [is_reversed(call) for _, call in made.client.calls][2:] == [True]


def test_an_order_that_answered_is_enough() -> None:
    with world(m=in_order(yes(0.8), Thinking(yes(0.6)))) as made:
        assert made.decide(asking(NOUL, mode="logprobs"))["answers"]["k0"]["noul"] == 0.8
        assert len(made.client.calls) == 2


def test_thought_without_end_is_told_and_no_room_is_remembered() -> None:
    with world(m=Thinking(yes(0.8), thought=1_000_000)) as made:
        assert "used up the output limit" in told(made, mode="logprobs", debias=False)
        assert len(made.client.calls) == 2
        assert not made.client.traits.of(M).thinks
        told(made, debias=False)
        assert (
            asked(made)[2:] == ["label"] * 2 + [JSON_SCHEMA] * 2 + [JSON_OBJECT] * 2 + ["words"] * 2
        )


def test_a_label_reply_that_is_cut_in_prose_is_not_asked_for_with_room() -> None:
    prose = (Token("I", -0.1, (("I", -0.1), ("x", -3.0))),)
    wordy = in_mode(lambda _n, _c: Completion("I think that", prose, cut=True), yes(0.8))
    with world(m=wordy) as made:
        made.decide(asking(NOUL, debias=False))
        assert asked(made) == ["label", JSON_SCHEMA]


class Rambling:
    """A model whose JSON reply is cut below `least` tokens, and which never thinks."""

    def __init__(self, least: int, hidden: int = 0) -> None:
        self.least, self.hidden = least, hidden

    def __call__(self, name: str, call: ChatCall) -> Completion:
        text = '{"q1": {"because": "it is'
        if call.max_tokens < self.least:
            return Completion(text, (), 10, len(text) + self.hidden, cut=True)
        return yes(0.8)(name, call)


@pytest.mark.parametrize(
    ("hidden", "thinks"), [(0, False), (HIDDEN_TOKENS, False), (HIDDEN_TOKENS + 1, True)]
)
def test_a_json_reply_that_rambled_is_asked_for_with_room_which_only_thought_makes_last(
    hidden: int, thinks: bool
) -> None:
    with world(m=Rambling(5_000, hidden)) as made:
        assert made.decide(asking(NOUL, mode="verbal", debias=False))["mode"] == "verbal"
        assert [call.max_tokens for _, call in made.client.calls][1:] == [JSON_ROOM]
        assert made.client.traits.of(M).thinks is thinks


@pytest.mark.parametrize("text", ["<think>so it is</think>{", "so it is</think>{", "<reasoning>it"])
def test_a_text_with_thought_shows_that_a_model_thinks(text: str) -> None:
    def thinking(name: str, call: ChatCall) -> Completion:
        if call.max_tokens < 5_000:
            return Completion(text, (), 10, 5, cut=True)
        return yes(0.8)(name, call)

    with world(m=thinking) as made:
        made.decide(asking(NOUL, mode="verbal", debias=False))
        assert made.client.traits.of(M).thinks


def test_thought_that_shows_only_where_there_was_room_is_remembered_too() -> None:
    def late(name: str, call: ChatCall) -> Completion:
        if call.max_tokens < 5_000:
            return Completion('{"q1": ', (), 10, 5, cut=True)
        return replace(yes(0.8)(name, call), output_tokens=2_000)

    with world(m=late) as made:
        made.decide(asking(NOUL, mode="verbal", debias=False))
        assert made.client.traits.of(M).thinks


def test_a_reply_that_was_not_cut_leaves_no_trace_of_its_thought() -> None:
    """Room is for models that ran out of it."""
    wordy = lambda name, call: replace(yes(0.8)(name, call), output_tokens=500)  # noqa: E731
    with world(m=wordy) as made:
        made.decide(asking(NOUL, debias=False))
        assert not made.client.traits.of(M).thinks


def test_thought_whose_tokens_are_listed_before_the_label_is_not_read() -> None:
    def reasoner(name: str, call: ChatCall) -> Completion:
        told = yes(0.8)(name, call)
        thought = [Token(text, -0.1, ((text, -0.1), ("no", -2.5))) for text in ("no", ",", " no")]
        return replace(told, tokens=(*thought, *(told.tokens or ())))

    with world(m=reasoner) as made:
        response = made.decide(asking(NOUL, CHOICE_BY_YES, debias=False))
        assert (response["mode"], asked(made)) == ("logprobs", ["lines"])
        assert [one["noul"] for one in response["answers"].values()] == [pytest.approx(0.8)] * 2


def test_tokens_of_another_text_are_no_label() -> None:
    def mixed_up(name: str, call: ChatCall) -> Completion:
        return replace(yes(0.8)(name, call), text="no")

    with world(m=in_mode(mixed_up, yes(0.8))) as made:
        assert made.decide(asking(NOUL, debias=False))["mode"] == "verbal"
        assert made.client.traits.of(M).labels.reason is Reason.UNREADABLE


def test_the_reason_is_thought_where_that_kept_labels_from_coming() -> None:
    with world(m=in_mode(failing(Cut()), yes(0.8))) as made:
        made.decide(asking(NOUL, debias=False))
        assert made.client.traits.of(M).labels.reason is Reason.CUT


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyRefused(), "does not accept the key (check the provider's key variable)"),
        (NoCredit(), "no credit left (add credit"),
        (Refused(), "refused the call (SVC_LOG_LEVEL"),
        (ServerTrouble(), "failed or could not be reached ("),
        (BadReply(), "no valid answer (try a larger model"),
    ],
)
def test_a_model_error_names_the_model_its_trouble_and_what_to_do(
    error: Exception, words: str
) -> None:
    with world(m=failing(error)) as made:
        message = told(made, debias=False)
        assert message.startswith("model '@here/m': ")
        assert words in message


def test_every_kind_of_error_names_the_model() -> None:
    for error, kind in ((Gone(), ModelUnavailable), (Throttled(retry_after=90), RateLimited)):
        with world(m=failing(error)) as made, pytest.raises(kind, match=r"^model '@here/m': "):
            made.decide(asking(NOUL))


def test_different_troubles_of_both_orders_are_both_told() -> None:
    with world(m=in_order(failing(Refused()), failing(NoCredit()))) as made:
        message = told(made)
    assert message.startswith("model '@here/m': ")
    first, second = message.removeprefix("model '@here/m': ").split("; ")
    assert "refused the call (" in first and "no credit left (" in second


def test_an_unforeseen_failure_is_an_internal_error_without_its_words() -> None:
    with world(m=failing(ZeroDivisionError("secret"))) as made:
        with pytest.raises(InternalError) as error:
            made.decide(asking(NOUL))
        assert "secret" not in error.value.message


def test_an_unreadable_verbal_reply_is_an_error_and_no_guess() -> None:
    with world(m=saying({"yes": 0.0, "no": 0.0})) as made, pytest.raises(ModelError):
        made.decide(asking(NOUL, mode="verbal"))


def test_an_unreadable_reply_is_told_without_its_words() -> None:
    secret = lambda _name, _call: Completion("sesame", (Token("sesame", 0.0, ()),))  # noqa: E731
    with world(m=secret) as made, pytest.raises(ModelError):
        made.decide(asking(NOUL))
    assert made.client.told
    assert all("@here/m" in one and "sesame" not in one for one in made.client.told)


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
        (text,) = users(made.client.calls_to("m"))
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
