"""Servers that answer with probabilities and write no text, among other models and alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svc.errors import ModelError, ModelUnavailable, RateLimited
from svc.providers.failures import (
    BadReply,
    Gone,
    NoLogprobs,
    Refused,
    ServerTrouble,
    Throttled,
    Unanswerable,
)
from svc.providers.protocol import DecisionCall
from svc.providers.replies import Completion
from svc.providers.traits import UNKNOWN
from tests.engine.fakes import World, failing, world
from tests.engine.models import (
    CHOICE,
    INTEGER,
    MULTI,
    NOUL,
    NUMBER,
    SCORE,
    TEXT,
    Held,
    asking,
    by_text,
    yes,
)

KINDS = {"d": "decisions", "s": "systemone"}
SHARES = {"billing": 0.7, "access": 0.2, "none_of_these": 0.1, "low": 0.1, "mid": 0.3, "high": 0.6}
WEIGHT_OF_YES = 0.8

Decider = Callable[[str, Any], Completion]


def deciding(of_yes: float = WEIGHT_OF_YES) -> Decider:
    """A server that knows how probable each option is by its name."""

    def decide(_name: str, call: Any) -> Completion:
        assert isinstance(call, DecisionCall)
        found = []
        for question in call.questions:
            rows = zip(question.positions, question.options, strict=True)
            named = {position: SHARES[option] for position, (option, _) in rows}
            found.append(named or {0: of_yes, 1: 1 - of_yes})
        return Completion("", None, 10, 1, decided=tuple(found))

    return decide


def calls(made: World, name: str = "d") -> list[DecisionCall]:
    return [call for call in made.client.calls_to(name) if isinstance(call, DecisionCall)]


def refusal(made: World, body: dict[str, Any]) -> str:
    with pytest.raises(ModelError) as error:
        made.decide(body)
    return error.value.message


# --- alone ---


@pytest.mark.parametrize("name", ["d", "s"])
@pytest.mark.parametrize("mode", ["auto", "logprobs"])
def test_a_decision_server_answers_every_question_of_labels_in_one_call(
    name: str, mode: str
) -> None:
    with world(kinds=KINDS, **{name: deciding()}) as made:
        body = asking(CHOICE, NOUL, SCORE, MULTI, model=f"@here/{name}", mode=mode, debias=False)
        response = made.decide(body)
        assert (response["mode"], response["model"]) == ("logprobs", f"@here/{name}")
        choice, noul, score, multi = response["answers"].values()
        assert choice["probabilities"] == {"billing": 0.7, "access": 0.2, "none_of_these": 0.1}
        assert noul["noul"] == 0.8
        assert score["probabilities"] == [0.1, 0.3, 0.6]
        assert multi["probabilities"] == {"refund": 0.8, "delay": 0.8}
        assert len(made.client.calls) == 1
        assert response["cost_usd"] == 0.001


def test_several_choices_are_asked_as_one_yes_or_no_question_an_option() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        described = {**MULTI, "options": {"refund": "Money back", "delay": ""}}
        made.decide(asking(described, model="@here/d", debias=False))
        (call,) = calls(made)
    assert [(one.kind, one.options) for one in call.questions] == [("yes_no", ())] * 2
    assert [one.instructions for one in call.questions] == [
        "Which topics?\nDoes this option apply? refund: Money back",
        "Which topics?\nDoes this option apply? delay",
    ]


def test_a_reversed_order_is_shown_reversed_and_mapped_back() -> None:
    """A server that prefers what stands first is set right by the other order."""

    def first(_name: str, call: Any) -> Completion:
        found = []
        for question in call.questions:
            weights = [0.8, 0.1, 0.1]
            found.append(dict(zip(question.positions, weights, strict=True)))
        return Completion("", None, 10, 1, decided=tuple(found))

    with world(kinds=KINDS, d=first) as made:
        response = made.decide(asking(CHOICE, model="@here/d"))
        shown = [[name for name, _ in call.questions[0].options] for call in calls(made)]
        assert sorted(shown) == sorted(
            [["billing", "access", "none_of_these"], ["none_of_these", "access", "billing"]]
        )
        assert response["debiased"] is True
        assert response["answers"]["k0"]["probabilities"] == pytest.approx(
            {"billing": 0.45, "access": 0.1, "none_of_these": 0.45}
        )


def test_a_server_without_a_bias_answers_alike_in_both_orders() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        response = made.decide(asking(CHOICE, SCORE, NOUL, MULTI, model="@here/d"))
        assert len(made.client.calls) == 2
        answers = list(response["answers"].values())
        assert answers[0]["probabilities"] == {"billing": 0.7, "access": 0.2, "none_of_these": 0.1}
        assert answers[1]["probabilities"] == [0.1, 0.3, 0.6]
        assert (answers[2]["noul"], answers[3]["probabilities"]["delay"]) == (0.8, 0.8)


@pytest.mark.parametrize("question", [NOUL, SCORE, MULTI])
@pytest.mark.parametrize("debias", [True, "auto"])
def test_a_question_that_reads_the_same_in_both_orders_is_asked_once(
    question: dict[str, Any], debias: bool | str
) -> None:
    with world(kinds=KINDS, d=deciding(), m=yes(0.8)) as made:
        response = made.decide(asking(question, model="@here/d", debias=debias))
        assert len(made.client.calls) == 1
        assert response["debiased"] is False


def test_one_question_with_an_order_is_enough_for_both_orders() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        response = made.decide(asking(NOUL, CHOICE, model="@here/d"))
        assert (len(made.client.calls), response["debiased"]) == (2, True)


def test_a_chat_model_is_asked_in_both_orders_what_a_decision_server_is_asked_once() -> None:
    with world(kinds=KINDS, d=deciding(), a=yes(0.4)) as made:
        response = made.decide(asking(NOUL, model={"council": ["@here/d", "@here/a"]}))
        assert [len(made.client.calls_to(name)) for name in "da"] == [1, 2]
        assert response["debiased"] is True


def test_options_that_a_server_leaves_out_share_what_is_left() -> None:
    def partly(_name: str, _call: Any) -> Completion:
        return Completion("", None, 10, 1, decided=({0: 0.6},))

    with world(kinds=KINDS, d=partly) as made:
        answer = made.decide(asking(CHOICE, model="@here/d", debias=False))["answers"]["k0"]
        assert answer["probabilities"] == {"billing": 0.6, "access": 0.2, "none_of_these": 0.2}


def test_the_server_is_shown_the_state_the_examples_and_earlier_answers() -> None:
    taught = {**CHOICE, "examples": [{"state": "card\nlost", "label": "access"}]}
    later = {**NOUL, "depends_on": ["k0"]}
    with world(kinds=KINDS, d=deciding()) as made:
        made.decide(asking(taught, later, state="charged twice", model="@here/d", debias=False))
        first, second = calls(made)
    assert first.state == "charged twice"
    assert first.questions[0].instructions == (
        "Which team?\nExample input: card lost\nExample answer: access"
    )
    assert first.questions[0].options[0] == ("billing", "Invoices")
    assert second.state == "Earlier answers:\n- Which team?: billing\n\ncharged twice"


def test_keys_of_questions_never_reach_a_decision_server() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        questions = {"secret_key": NOUL, "other_key": CHOICE}
        made.decide({"state": "s", "questions": questions, "model": "@here/d"})
        assert "_key" not in repr(calls(made))


@pytest.mark.parametrize(("privacy", "deny"), [("strict", True), ("standard", False)])
def test_strict_privacy_is_passed_on(privacy: str, deny: bool) -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        made.decide(asking(NOUL, model="@here/d", privacy=privacy))
        assert {call.deny_data_collection for call in calls(made)} == {deny}


def test_images_are_passed_on() -> None:
    images = ["https://a.example/1.png"]
    with world(kinds=KINDS, d=deciding()) as made:
        made.decide(asking(NOUL, model="@here/d", images=images))
        assert {call.images for call in calls(made)} == {tuple(images)}


def test_nothing_is_learnt_of_ways_and_repeats_are_cached() -> None:
    with world(100, kinds=KINDS, d=deciding()) as made:
        made.decide(asking(NOUL, model="@here/d"))
        assert made.decide(asking(NOUL, model="@here/d"))["cached"] is True
        assert made.client.traits.of("@here/d") == UNKNOWN


def test_each_field_can_be_explained() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        body = asking(NOUL, state={"a": 1, "b": 2}, model="@here/d", debias=False, explain=True)
        answer = made.decide(body)["answers"]["k0"]
        assert answer["explain"] == {"a": 0.0, "b": 0.0}


# --- what it cannot answer ---


@pytest.mark.parametrize("name", ["d", "s"])
@pytest.mark.parametrize(
    ("question", "fields", "words"),
    [
        (TEXT, {}, "a decision server has no text questions"),
        (NUMBER, {}, "a decision server has no number questions"),
        (INTEGER, {}, "a decision server has no integer questions"),
        (NOUL, {"think": True}, "a decision server does not reason in words"),
        ({**NOUL, "think": True}, {}, "a decision server does not reason in words"),
        (NOUL, {"mode": "verbal"}, "cannot be asked in mode verbal"),
    ],
)
def test_what_a_decision_server_cannot_answer_is_told_without_a_call(
    name: str, question: dict[str, Any], fields: dict[str, Any], words: str
) -> None:
    with world(kinds=KINDS, **{name: deciding()}) as made:
        message = refusal(made, asking(question, model=f"@here/{name}", **fields))
        assert message.startswith(f"model '@here/{name}': ")
        assert words in message
        assert not made.client.calls


def test_one_question_that_cannot_be_answered_is_told_of_a_group() -> None:
    with world(kinds=KINDS, d=deciding()) as made:
        message = refusal(made, asking(NOUL, TEXT, model="@here/d"))
        assert "no text questions" in message
        assert not made.client.calls


def test_more_options_than_letters_in_a_reply_are_no_obstacle() -> None:
    names = {f"intent_{number}": "" for number in range(60)}

    def even(_name: str, call: Any) -> Completion:
        (question,) = call.questions
        assert len(question.options) == 61
        at = [name for name, _ in question.options].index("intent_42")
        return Completion("", None, 10, 1, decided=({question.positions[at]: 0.9},))

    with world(kinds=KINDS, d=even) as made:
        response = made.decide(asking({**CHOICE, "options": names}, model="@here/d"))
        assert response["answers"]["k0"]["choice"] == "intent_42"
        assert response["mode"] == "logprobs"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (Refused(), ModelError, "refused the call"),
        (Unanswerable("at most 10 levels"), ModelError, "at most 10 levels"),
        (BadReply(), ModelError, "no valid answer"),
        (NoLogprobs(), ModelError, ""),
        (ServerTrouble(), ModelError, "failed or could not be reached"),
        (Gone(), ModelUnavailable, "does not exist"),
        (Throttled(retry_after=90), RateLimited, "limits the rate"),
    ],
)
def test_a_failing_decision_server_is_asked_in_no_other_way(
    error: Exception, kind: type[Exception], words: str
) -> None:
    with world(kinds=KINDS, d=failing(error)) as made:
        with pytest.raises(kind) as raised:
            made.decide(asking(NOUL, model="@here/d", debias=False))
        assert str(raised.value).startswith("model '@here/d': ")
        assert words in str(raised.value)
        assert all(isinstance(call, DecisionCall) for _, call in made.client.calls)


@pytest.mark.parametrize("decided", [({},), ({0: 0.0, 1: 0.0},)])
def test_an_answer_without_probabilities_is_an_error_and_no_guess(
    decided: tuple[dict[int, float], ...],
) -> None:
    with world(kinds=KINDS, d=lambda _n, _c: Completion("", None, decided=decided)) as made:
        with pytest.raises(ModelError):
            made.decide(asking(NOUL, model="@here/d"))


# --- among other models ---


def test_a_chain_goes_from_a_chat_model_to_a_decision_server() -> None:
    with world(kinds=KINDS, a=failing(Refused()), d=deciding()) as made:
        response = made.decide(asking(NOUL, model=["@here/a", "@here/d"], debias=False))
        assert (response["model"], response["mode"]) == ("@here/d", "logprobs")
        assert response["answers"]["k0"]["noul"] == 0.8


def test_a_chain_goes_on_to_a_chat_model_for_what_a_decision_server_cannot_answer() -> None:
    with world(kinds=KINDS, d=deciding(), b=yes(0.3)) as made:
        body = asking(NOUL, model=["@here/d", "@here/b"], mode="verbal", debias=False)
        response = made.decide(body)
        assert (response["model"], response["mode"]) == ("@here/b", "verbal")
        assert response["answers"]["k0"]["noul"] == pytest.approx(0.3)


def test_a_chain_that_fails_tells_why_each_member_did() -> None:
    with world(kinds=KINDS, d=deciding(), b=failing(Refused())) as made:
        message = refusal(made, asking(TEXT, model=["@here/d", "@here/b"]))
    first, second = message.split("; ")
    assert first == "model '@here/d': a decision server has no text questions"
    assert second.startswith("model '@here/b': ")


def test_a_council_of_both_kinds_is_blended() -> None:
    with world(kinds=KINDS, d=deciding(), a=yes(0.4), s=deciding(0.9)) as made:
        council = ["@here/d", "@here/a", "@here/s"]
        response = made.decide(asking(NOUL, model={"council": council}, debias=False))
        assert response["answers"]["k0"]["noul"] == pytest.approx((0.8 + 0.4 + 0.9) / 3, abs=1e-6)
        assert response["answers"]["k0"]["agreement"] == pytest.approx(2 / 3, abs=1e-6)
        assert response["mode"] == "logprobs"


def test_a_council_is_of_those_who_can_answer() -> None:
    with world(kinds=KINDS, d=deciding(), a=yes(0.4)) as made:
        council = {"council": ["@here/d", "@here/a"]}
        response = made.decide(asking(NOUL, model=council, think=True))
        assert response["model"] == "@here/a"


def test_a_cascade_escalates_from_an_unsure_decision_server() -> None:
    with world(kinds=KINDS, d=deciding(0.6), a=yes(0.95)) as made:
        cascade = {"cascade": ["@here/d", "@here/a"]}
        answer = made.decide(asking(NOUL, model=cascade, debias=False))["answers"]["k0"]
        assert (answer["noul"], answer["answered_by"]) == (pytest.approx(0.95), "@here/a")


def test_a_cascade_escalates_to_a_decision_server() -> None:
    unsure = by_text("urgent", yes(0.6), yes(0.95))
    with world(kinds=KINDS, a=unsure, d=deciding(0.9)) as made:
        cascade = {"cascade": ["@here/a", "@here/d"]}
        answer = made.decide(asking(NOUL, model=cascade, debias=False))["answers"]["k0"]
        assert (answer["noul"], answer["answered_by"]) == (0.9, "@here/d")


def test_a_race_is_won_by_whoever_answers_first() -> None:
    slow = Held(yes(0.1))
    with world(kinds=KINDS, a=slow, d=deciding()) as made:
        response = made.decide(asking(NOUL, model={"race": ["@here/a", "@here/d"]}))
        assert response["model"] == "@here/d"
        slow.let_go.set()


def test_a_race_is_not_won_by_a_server_that_cannot_answer() -> None:
    with world(kinds=KINDS, a=yes(0.3), d=deciding()) as made:
        race = {"race": ["@here/d", "@here/a"]}
        assert made.decide(asking(NOUL, model=race, think=True))["model"] == "@here/a"
