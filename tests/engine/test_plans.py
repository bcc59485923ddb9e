from __future__ import annotations

import threading
from typing import Any

import pytest

from svc.errors import (
    ApiError,
    InternalError,
    ModelError,
    ModelUnavailable,
    NoAnswer,
    PartlyLimited,
    RateLimited,
    Timeout,
)
from svc.providers.bodies import ChatCall
from svc.providers.failures import (
    Cut,
    Gone,
    KeyRefused,
    NoCredit,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.replies import Completion
from svc.usage import StatedUsage
from tests.engine.fakes import Answerer, answering, failing, users, world
from tests.engine.models import (
    CHOICE,
    NOUL,
    TEXT,
    Held,
    babbling,
    by_text,
    in_mode,
    in_order,
    saying,
    value,
    yes,
)
from tests.preferring import PreferringModel

TWO = {**CHOICE, "options": {"a": "", "b": ""}, "escape": False}
OTHER = {**NOUL, "instructions": "Is it polite?"}
GONE, BUSY, BROKEN = failing(Gone()), failing(Throttled(retry_after=90)), failing(Refused())


def ids(names: str) -> list[str]:
    return [f"@here/{name}" for name in names]


def asking(model: Any, *questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    numbered = {f"k{i}": question for i, question in enumerate(questions or [NOUL])}
    return {"state": "s", "questions": numbered, "model": model, "debias": False, **fields}


def preferring(**weights: float) -> Answerer:
    return answering(PreferringModel(weights))


# --- chain ---


def test_a_chain_asks_its_first_model_alone_while_that_answers() -> None:
    with world(a=yes(0.9), b=yes(0.1)) as made:
        response = made.decide(asking(ids("ab")))
        assert response["model"] == "@here/a"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.9)
        assert not made.client.calls_to("b")


def test_a_model_that_was_paid_for_nothing_counts_towards_the_cost() -> None:
    with world(a=babbling, b=yes(0.3)) as made:
        response = made.decide(asking(ids("ab"), mode="logprobs"))
        assert (response["model"], response["cost_usd"]) == ("@here/b", 0.002)


@pytest.mark.parametrize("trouble", [GONE, BUSY, BROKEN, babbling])
def test_a_chain_goes_on_where_a_model_fails(trouble: Answerer) -> None:
    with world(a=trouble, b=trouble, c=yes(0.3)) as made:
        response = made.decide(asking(ids("abc")), 60)
        assert response["model"] == "@here/c"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("answerers", "kind"),
    [
        ((GONE, GONE), ModelUnavailable),
        ((BROKEN, babbling), NoAnswer),
        ((GONE, BROKEN), NoAnswer),
        ((GONE, BUSY), PartlyLimited),
        ((BUSY, BUSY), RateLimited),
    ],
)
@pytest.mark.parametrize("plan", ["chain", "council", "cascade", "race"])
def test_when_every_model_fails_the_error_says_how(
    plan: str, answerers: tuple[Answerer, Answerer], kind: type[ApiError]
) -> None:
    model = ids("ab") if plan == "chain" else {plan: ids("ab")}
    with world(a=answerers[0], b=answerers[1]) as made:
        with pytest.raises(ApiError) as error:
            made.decide(asking(model))
        assert type(error.value) is kind
        assert not made.journal.records


@pytest.mark.parametrize("plan", ["chain", "council", "cascade", "race"])
def test_the_error_has_the_words_of_every_model(plan: str) -> None:
    model = ids("abc") if plan == "chain" else {plan: ids("abc")}
    with world(a=failing(NoCredit()), b=failing(KeyRefused()), c=babbling) as made:
        with pytest.raises(ModelError) as error:
            made.decide(asking(model))
    words = error.value.message.split("; ")
    assert len(words) == 3
    for name, said in {"a": "no credit", "b": "accept the key", "c": "no valid answer"}.items():
        (own,) = [one for one in words if one.startswith(f"model '@here/{name}': ")]
        assert said in own


def test_when_all_are_rate_limited_the_soonest_end_is_told() -> None:
    later, sooner = failing(Throttled(retry_after=90)), failing(Throttled(retry_after=40))
    with world(a=later, b=sooner, c=later) as made:
        with pytest.raises(RateLimited) as error:
            made.decide(asking(ids("abc")))
        assert error.value.retry_after == 40


def test_a_chain_does_not_go_on_after_a_failure_of_our_own() -> None:
    with world(a=failing(ZeroDivisionError()), b=yes(0.9)) as made:
        with pytest.raises(InternalError):
            made.decide(asking(ids("ab")))
        assert not made.client.calls_to("b")


def test_every_group_goes_down_the_chain_on_its_own() -> None:
    deep = by_text("Is it polite?", BROKEN, yes(0.9))
    with world(a=deep, b=yes(0.2)) as made:
        response = made.decide(asking(ids("ab"), NOUL, {**OTHER, "think": True}))
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.9)
        assert response["answers"]["k1"]["noul"] == pytest.approx(0.2)
        assert response["model"] == "@here/a,@here/b"


# --- council ---


def test_a_council_is_blended_and_says_who_agrees() -> None:
    members = {"a": preferring(a=3.0), "b": preferring(a=1.5), "c": preferring(b=9.0)}
    with world(**members) as made:
        response = made.decide(asking({"council": ids("abc")}, TWO))
        answer = response["answers"]["k0"]
        assert answer["probabilities"]["a"] == pytest.approx((0.75 + 0.6 + 0.1) / 3, abs=1e-6)
        assert answer["choice"] == "b"
        assert answer["agreement"] == pytest.approx(1 / 3, abs=1e-6)
        assert response["model"] == "@here/a,@here/b,@here/c"


def test_a_council_is_asked_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    def met(name: str, call: Any) -> Any:
        meeting.wait(10)
        return yes(0.9)(name, call)

    with world(a=met, b=met, c=met) as made:
        assert made.decide(asking({"council": ids("abc")}))["answers"]["k0"]["agreement"] == 1.0


def test_a_tied_council_takes_the_first_option() -> None:
    with world(a=preferring(a=4.0), b=preferring(b=4.0)) as made:
        answer = made.decide(asking({"council": ids("ab")}, TWO))["answers"]["k0"]
        assert answer["choice"] == "a"
        assert (answer["agreement"], answer["confidence"]) == (0.5, 0.5)


@pytest.mark.parametrize("trouble", [GONE, BROKEN, BUSY, babbling])
def test_a_council_is_of_the_members_that_answered(trouble: Answerer) -> None:
    with world(a=trouble, b=yes(0.9), c=yes(0.7)) as made:
        response = made.decide(asking({"council": ids("abc")}))
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.8)
        assert response["answers"]["k0"]["agreement"] == 1.0
        assert response["model"] == "@here/b,@here/c"


def test_a_council_of_one_survivor_still_answers() -> None:
    with world(a=GONE, b=yes(0.9)) as made:
        response = made.decide(asking({"council": ids("ab")}))
        assert (response["model"], response["answers"]["k0"]["agreement"]) == ("@here/b", 1.0)


def test_a_council_takes_the_extracted_value_of_its_majority() -> None:
    members = {"a": saying(value("Rome", 0.9)), "b": saying(value("oslo", 0.8))}
    with world(**members, c=saying(value("Oslo ", 0.4))) as made:
        answer = made.decide(asking({"council": ids("abc")}, TEXT))["answers"]["k0"]
        assert answer["value"] == "oslo"
        assert answer["agreement"] == pytest.approx(2 / 3, abs=1e-6)
        assert answer["confidence"] == pytest.approx(0.6 * 2 / 3, abs=1e-6)


def test_a_tied_council_takes_the_value_of_the_more_confident_side() -> None:
    with world(a=saying(value("Rome", 0.6)), b=saying(value("Oslo", 0.8))) as made:
        answer = made.decide(asking({"council": ids("ab")}, TEXT))["answers"]["k0"]
        assert (answer["value"], answer["agreement"], answer["confidence"]) == ("Oslo", 0.5, 0.4)


def test_a_council_in_mixed_modes_is_verbal() -> None:
    with world(a=yes(0.9), b=in_mode(babbling, yes(0.7))) as made:
        response = made.decide(asking({"council": ids("ab")}))
        assert response["mode"] == "verbal"


# --- cascade ---


def test_only_unsure_questions_go_on_and_each_answer_says_whose_it_is() -> None:
    cheap = by_text(
        "Is it polite?", saying({"yes": 0.9, "no": 0.1}, {"yes": 0.6, "no": 0.4}), yes(0)
    )
    with world(a=cheap, b=yes(0.95)) as made:
        response = made.decide(asking({"cascade": ids("ab")}, NOUL, OTHER, mode="verbal"))
        first, second = response["answers"].values()
        assert (first["noul"], first["answered_by"]) == (pytest.approx(0.9), "@here/a")
        assert (second["noul"], second["answered_by"]) == (pytest.approx(0.95), "@here/b")
        (text,) = users(made.client.calls_to("b"))
        assert "Is it polite?" in text
        assert "Is it urgent?" not in text
        assert response["model"] == "@here/a,@here/b"


def test_a_sure_cheap_model_ends_the_cascade() -> None:
    with world(a=yes(0.1), b=yes(0.95)) as made:
        response = made.decide(asking({"cascade": ids("ab")}))
        assert response["model"] == "@here/a"
        assert response["cost_usd"] == 0.001
        assert not made.client.calls_to("b")


@pytest.mark.parametrize(
    ("p", "below", "models"),
    [(0.8, None, "a"), (0.79, None, "ab"), (0.6, 0.5, "a"), (0.98, 0.99, "ab"), (0.5, 0, "a")],
)
def test_confidence_below_the_threshold_escalates(
    p: float, below: float | None, models: str
) -> None:
    plan = {"cascade": ids("ab"), **({} if below is None else {"escalate_below": below})}
    with world(a=yes(p), b=yes(0.95)) as made:
        made.decide(asking(plan))
        assert bool(made.client.calls_to("b")) is ("b" in models)


def test_a_confidence_at_the_threshold_counts_as_it_is_shown() -> None:
    noisy = in_order(yes(0.06), yes(0.34))  # 1 - 0.2 in floats is a hair below 0.8
    with world(a=noisy, b=BROKEN) as made:
        made.decide(asking({"cascade": ids("ab")}, mode="verbal", debias=True))
        assert not made.client.calls_to("b")


def test_extraction_escalates_by_its_confidence() -> None:
    with world(a=saying(value("Rome", 0.7)), b=saying(value("Oslo", 0.9))) as made:
        answer = made.decide(asking({"cascade": ids("ab")}, TEXT))["answers"]["k0"]
        assert (answer["value"], answer["answered_by"]) == ("Oslo", "@here/b")


@pytest.mark.parametrize("trouble", [GONE, BROKEN, BUSY, babbling])
def test_a_failing_model_of_a_cascade_is_passed_over(trouble: Answerer) -> None:
    with world(a=trouble, b=yes(0.6), c=trouble) as made:
        response = made.decide(asking({"cascade": ids("abc")}))
        assert response["answers"]["k0"]["answered_by"] == "@here/b"
        assert made.client.calls_to("c")


def test_the_last_model_of_a_cascade_answers_however_unsure() -> None:
    with world(a=yes(0.7), b=yes(0.5)) as made:
        answer = made.decide(asking({"cascade": ids("ab")}))["answers"]["k0"]
        assert (answer["noul"], answer["answered_by"]) == (0.5, "@here/b")


def test_the_mode_is_that_of_the_answers_and_not_of_what_was_superseded() -> None:
    with world(a=in_mode(babbling, yes(0.6)), b=yes(0.95)) as made:
        assert made.decide(asking({"cascade": ids("ab")}))["mode"] == "logprobs"


# --- a model without a valid value ---

NOTHING = saying(value(5))


def test_a_chain_goes_on_where_a_model_has_no_valid_value() -> None:
    with world(a=NOTHING, b=saying(value("Rome", 0.4))) as made:
        response = made.decide(asking(ids("ab"), TEXT))
        assert response["answers"]["k0"]["value"] == "Rome"
        assert response["model"] == "@here/b"


@pytest.mark.parametrize("other", [NOTHING, BROKEN], ids=["nothing", "broken"])
@pytest.mark.parametrize("plan", ["chain", "council", "cascade", "race"])
def test_no_valid_value_is_an_answer_where_no_model_has_one(plan: str, other: Answerer) -> None:
    with world(a=NOTHING, b=other) as made:
        model = ids("ab") if plan == "chain" else {plan: ids("ab")}
        answer = made.decide(asking(model, TEXT))["answers"]["k0"]
        assert (answer["value"], answer["confidence"]) == (None, 0)


def test_a_council_is_not_outvoted_by_members_without_a_valid_value() -> None:
    with world(a=NOTHING, b=NOTHING, c=saying(value("Rome"))) as made:
        answer = made.decide(asking({"council": ids("abc")}, TEXT))["answers"]["k0"]
        assert (answer["value"], answer["agreement"]) == ("Rome", pytest.approx(1 / 3, abs=1e-6))
        assert answer["confidence"] == pytest.approx(0.3)


def test_a_cascade_keeps_an_unsure_value_where_the_next_model_has_none() -> None:
    with world(a=saying(value("Rome", 0.5)), b=NOTHING) as made:
        answer = made.decide(asking({"cascade": ids("ab")}, TEXT))["answers"]["k0"]
        assert (answer["value"], answer["answered_by"]) == ("Rome", "@here/a")


def test_a_race_is_not_won_without_a_valid_value() -> None:
    slow = Held(saying(value("Rome")))

    def quick(name: str, call: ChatCall) -> Completion:
        try:
            return NOTHING(name, call)
        finally:
            slow.let_go.set()

    with world(a=quick, b=slow) as made:
        response = made.decide(asking({"race": ids("ab")}, TEXT))
        assert response["answers"]["k0"]["value"] == "Rome"


# --- race ---


def test_the_first_valid_answer_wins_and_the_losers_are_not_waited_for() -> None:
    held = Held(yes(0.1))
    with world(a=held, b=yes(0.9), c=BROKEN) as made:
        response = made.decide(asking({"race": ids("abc")}))
        assert response["model"] == "@here/b"
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.9)
        assert response["cost_usd"] == 0.001
        assert not held.let_go.is_set()
        held.let_go.set()


def test_a_loser_is_told_that_nobody_waits() -> None:
    asked, cut_off = threading.Event(), threading.Event()

    with world(a=yes(0.5), b=yes(0.9)) as made:
        plain_call = made.client.call

        def call(
            model: Any, chat: Any, timeout_s: float, key: Any, deadline: Any, corrections: Any
        ) -> Any:
            if model.name == "b":
                assert asked.wait(30)
                return plain_call(model, chat, timeout_s, key, deadline, corrections)
            stopped = threading.Event()
            asked.set()
            with deadline.interrupting(stopped.set):
                assert stopped.wait(30)
            cut_off.set()
            raise ServerTrouble

        made.client.call = call  # type: ignore[method-assign]
        made.decide(asking({"race": ids("ab")}))
        assert cut_off.wait(30)


def test_an_invalid_answer_does_not_win() -> None:
    with world(a=babbling, b=yes(0.9)) as made:
        response = made.decide(asking({"race": ids("ab")}, mode="verbal"))
        assert response["model"] == "@here/b"


def test_the_time_of_a_race_is_the_requests() -> None:
    held = Held(yes(0.5))
    with world(a=held, b=held) as made:
        with pytest.raises(Timeout):
            made.decide(asking({"race": ids("ab")}), 0.1)
        held.let_go.set()


def test_a_race_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with world(a=yes(0.9), b=BROKEN, c=yes(0.2)) as made:
        for _ in range(5):
            made.decide(asking({"race": ids("abc")}))
    assert threading.active_count() == before


# --- all of them ---

PLANS = [ids("ab"), {"council": ids("ab")}, {"cascade": ids("ab")}, {"race": ids("ab")}]


@pytest.mark.parametrize("model", PLANS, ids=["chain", "council", "cascade", "race"])
def test_every_plan_works_with_stages_thinking_and_debias_together(model: Any) -> None:
    questions = [
        NOUL,
        {**OTHER, "think": True},
        {**NOUL, "instructions": "Is it both?", "depends_on": ["k0", "k1"]},
    ]
    with world(a=yes(0.9), b=yes(0.9)) as made:
        response = made.decide(asking(model, *questions, debias=True))
        assert [answer["stage"] for answer in response["answers"].values()] == [0, 0, 1]
        assert {answer["noul"] for answer in response["answers"].values()} == {0.9}
        assert response["debiased"] is True
        assert any(call.think for _, call in made.client.calls)


@pytest.mark.parametrize("model", PLANS, ids=["chain", "council", "cascade", "race"])
def test_every_plan_is_answered_from_the_cache_when_it_repeats(model: Any) -> None:
    with world(100, a=yes(0.9), b=yes(0.9)) as made:
        made.decide(asking(model))
        response = made.decide(asking(model))
        assert response["cached"] is True
        assert (response["cost_usd"], response["latency_ms"]) == (0, 0)


@pytest.mark.parametrize("model", [ids("ba"), {"council": ids("ab")}], ids=["chain", "council"])
def test_a_repeat_for_which_a_model_was_called_again_is_not_from_the_cache(model: Any) -> None:
    """What failed was not kept, and a call that fails may be paid."""
    with world(100, a=yes(0.9), b=BROKEN) as made:
        made.decide(asking(model))
        response = made.decide(asking(model))
        assert response["cached"] is False
        assert response["latency_ms"] > 0


@pytest.mark.parametrize(
    ("model", "fields", "by"),
    [
        (ids("a"), {"debias": True}, "@here/a logprobs"),
        (ids("a"), {"debias": False}, "@here/a logprobs"),
        (ids("c"), {"debias": True}, "@here/c logprobs-one-order"),
        (ids("c"), {"debias": False}, "@here/c logprobs"),
        ({"council": ids("ba")}, {}, "@here/a+!@here/b logprobs"),
        ({"council": ids("ad")}, {}, "@here/a+@here/d logprobs"),
        ({"council": ids("ac")}, {"debias": True}, "@here/a+@here/c logprobs-one-order"),
        ({"cascade": ids("ba"), "escalate_below": 0.8}, {}, "@here/a logprobs"),
    ],
    ids=str,
)
def test_what_was_answered_in_part_belongs_to_another_group_of_labels(
    model: Any, fields: dict[str, Any], by: str
) -> None:
    """A promise that rests on labels of whole councils, or of both orders, is none for a part."""
    halves = in_order(yes(0.9), failing(Refused()))
    with world(a=yes(0.9), b=BROKEN, c=halves, d=yes(0.8)) as made:
        decision = made.decision(asking(model, **fields))
        assert decision.questions[0].reading is not None
        assert decision.questions[0].reading["by"] == by


def test_what_a_failed_call_says_that_it_used_is_in_the_cost() -> None:
    thought = Cut()
    thought.usage = StatedUsage(100, 8_192)
    with world(a=failing(thought), b=yes(0.9)) as made:
        decision = made.decision(asking(ids("ab"), mode="logprobs"))
        calls = len(made.client.calls)
    assert (decision.input_tokens, decision.output_tokens) >= (100, 8_192)
    assert decision.cost_usd == pytest.approx(0.001 * calls)


def test_a_race_that_repeats_asks_nobody() -> None:
    held = Held(yes(0.9))
    with world(100, a=held, b=yes(0.8)) as made:
        first = made.decide(asking({"race": ids("ab")}))
        calls = len(made.client.calls)
        again = made.decide(asking({"race": ids("ab")}))
        assert (first["model"], again["model"], again["cached"]) == ("@here/b", "@here/b", True)
        assert len(made.client.calls) == calls
        held.let_go.set()


def test_only_their_own_plans_add_their_fields() -> None:
    with world(a=yes(0.9), b=yes(0.9)) as made:
        for model, added in [
            (ids("ab"), set()),
            ({"council": ids("ab")}, {"agreement"}),
            ({"cascade": ids("ab")}, {"answered_by"}),
            ({"race": ids("ab")}, set()),
        ]:
            answer = made.decide(asking(model))["answers"]["k0"]
            assert set(answer) - {"type", "noul", "calibrated"} == added
