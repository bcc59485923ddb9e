from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from svc.engine.calls import Outcome
from svc.errors import QuotaSpent, Timeout
from svc.evals.probing import STATES, Probed, Prober, Verdict
from svc.pins import NEWEST, PINS
from svc.providers.bodies import ChatCall
from svc.providers.failures import BadReply, CallError, Gone, NoLogprobs, Refused, Throttled
from svc.providers.replies import Completion, Token

VERBAL = Completion('{"q1": {"A": 0.7, "B": 0.1, "C": 0.1, "D": 0.1}, "q2": {"yes": 1, "no": 0}}')


def token(text: str, **alternatives: float) -> Token:
    return Token(text, -0.1, tuple((name, value) for name, value in alternatives.items()))


LABELS = Completion(
    "A\nyes",
    (
        token("A", A=-0.2, B=-3.0, C=-4.0, D=-5.0),
        token("\n", x=-1.0),
        token("yes", yes=-0.1, no=-3.0),
    ),
)
FEW = Completion("A\nyes", (token("A", A=-0.2), token("\n", x=-1.0), token("yes", yes=-0.1)))
TALK = Completion("The team is A", (token("The", The=-0.2, A=-3.0), token(" team", x=-1.0)))


def probed(answer: Callable[[ChatCall], Outcome]) -> Probed:
    ticks = itertools.count()
    return Prober(
        call=answer,
        cost_usd=lambda completion: 0.25,
        top_logprobs=20,
        pin=PINS[NEWEST],
        clock=lambda: next(ticks) / 10,
    ).probe()


def test_a_model_with_label_probabilities_is_usable() -> None:
    asked: list[ChatCall] = []

    def answer(chat: ChatCall) -> Outcome:
        asked.append(chat)
        return LABELS

    found = probed(answer)
    assert (found.verdict, found.why, found.cost_usd) == (Verdict.USABLE, "", 0.25)
    assert found.latency_ms == pytest.approx(100)
    assert found.mass == pytest.approx(0.893, abs=0.001)
    assert len(asked) == len(STATES) and all(chat.logprobs for chat in asked)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (NoLogprobs("400: told you"), "gives no log-probabilities that could be used"),
        (FEW, "fewer alternatives than asked for, and a label is missing"),
        (TALK, "a line of the reply holds more than a label"),
        (BadReply("200: words"), "the reply is no completion"),
    ],
)
def test_a_model_without_is_asked_verbally(reply: Outcome, why: str) -> None:
    found = probed(lambda chat: reply if chat.logprobs else VERBAL)
    assert (found.verdict, found.why) == (Verdict.VERBAL, why)
    assert found.latency_ms == pytest.approx(100) and found.mass is None


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Gone("404: secret words"), "no such model, or it is not open to this account"),
        (Refused("401: secret words"), "the provider refuses the call: its key, credits or policy"),
        (Throttled("429"), "the provider limits the rate of calls"),
        (QuotaSpent("the budget is spent", 60), "the budget is spent"),
    ],
)
def test_a_model_that_does_not_answer_failed_for_a_reason(error: Outcome, why: str) -> None:
    assert probed(lambda chat: error) == Probed(Verdict.FAILED, why)


def test_a_deadline_that_passed_is_a_reason_too() -> None:
    def answer(chat: ChatCall) -> Outcome:
        raise Timeout("it took too long")

    assert probed(answer) == Probed(Verdict.FAILED, "it took too long")


def test_a_model_that_fails_on_a_later_text_is_not_usable() -> None:
    replies = iter([LABELS, LABELS, TALK])
    found = probed(lambda chat: next(replies) if chat.logprobs else VERBAL)
    assert found.verdict is Verdict.VERBAL


def test_every_way_for_a_call_to_fail_has_words() -> None:
    for kind in CallError.__subclasses__():
        error = kind("p") if kind.__name__ == "ParameterRefused" else kind()
        assert probed(lambda chat, error=error: error).why
