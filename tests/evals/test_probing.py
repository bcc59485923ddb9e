from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from svc.engine.ask import ModelResult
from svc.errors import ApiError, ModelError, QuotaSpent, Timeout
from svc.evals.probing import STATES, Probed, Tried, Verdict, probe
from svc.providers.failures import Gone, KeyRefused, NoCredit, NoLogprobs, ProviderError, Throttled
from svc.providers.traits import UNKNOWN, Reason, Rung, Traits
from svc.questions import Reading
from svc.terms import Mode


def result(mode: str, *masses: float | None) -> ModelResult:
    readings = tuple(Reading((0.9, 0.1), mass) for mass in masses)
    return ModelResult(readings, readings, Mode(mode), True)


class Model:
    """Answers with what it is given, one ask after the other; the last goes on."""

    def __init__(
        self, *answers: ModelResult | ApiError, traits: Traits = UNKNOWN, decides: bool = False
    ) -> None:
        self.answers, self._traits, self.decides = list(answers), traits, decides
        self.states: list[str] = []

    def ask(self, state: str) -> Tried:
        self.states.append(state)
        answer = self.answers[min(len(self.states), len(self.answers)) - 1]
        if isinstance(answer, ApiError):
            raise answer
        first = len(self.states) == 1
        return Tried(answer, calls=6 if first else 2, cost_usd=0.75 if first else 0.25)

    def traits(self) -> Traits:
        return self._traits


def probed(model: Model) -> Probed:
    ticks = itertools.count()
    return probe(model, clock=lambda: next(ticks) / 10)


def test_a_model_with_label_probabilities_is_asked_in_one_call() -> None:
    model = Model(result("logprobs", 0.9, 0.8), result("logprobs", 0.7, 0.6))
    found = probed(model)
    assert found.verdict is Verdict.LINES and found.verdict.has_labels
    assert (found.why, found.thinks) == ("", False)
    assert model.states == list(STATES)


def test_the_figures_are_those_of_a_decision_once_the_way_is_known() -> None:
    found = probed(Model(result("logprobs", 0.9)))
    assert (found.calls, found.cost_usd) == (2, 0.25)
    assert found.latency_ms == pytest.approx(100)


def test_label_mass_is_shown_by_its_median_and_its_low_end() -> None:
    masses = [0.1, 0.5, 0.6, 0.7, 0.8, 0.9]
    found = probed(Model(*(result("logprobs", mass) for mass in masses)))
    assert (found.mass, found.low_mass) == (pytest.approx(0.65), 0.1)


def test_verbal_answers_have_no_label_mass() -> None:
    found = probed(Model(result("verbal", None)))
    assert (found.mass, found.low_mass) == (None, None)


@pytest.mark.parametrize(
    ("mode", "traits", "verdict", "why"),
    [
        (
            "logprobs",
            replace(UNKNOWN, labels=Rung(1, Reason.UNREADABLE)),
            Verdict.SINGLE,
            "its reply could not be read",
        ),
        (
            "verbal",
            replace(UNKNOWN, labels=Rung(2, Reason.NO_PROBABILITIES)),
            Verdict.SCHEMA,
            "it gives no usable log-probabilities",
        ),
        (
            "verbal",
            replace(
                UNKNOWN,
                labels=Rung(2, Reason.NO_PROBABILITIES),
                json=Rung(1, Reason.REFUSED),
            ),
            Verdict.OBJECT,
            "it gives no usable log-probabilities; the provider refuses to be asked that way",
        ),
        ("verbal", replace(UNKNOWN, json=Rung(2, Reason.CUT)), Verdict.WORDS, Reason.CUT.words),
    ],
)
def test_the_way_that_works_is_told_with_why_no_better_one_does(
    mode: str, traits: Traits, verdict: Verdict, why: str
) -> None:
    found = probed(Model(result(mode, None), traits=traits))
    assert (found.verdict, found.why) == (verdict, why)


def test_a_decision_server_is_told_apart_from_a_chat_model() -> None:
    assert probed(Model(result("logprobs", None), decides=True)).verdict is Verdict.DECISION


def test_a_model_that_needs_room_to_think_is_said_to() -> None:
    assert probed(Model(result("verbal", None), traits=replace(UNKNOWN, thinks=True))).thinks


@pytest.mark.parametrize(
    ("failure", "why", "advice"),
    [
        (Gone(), "the model does not exist or is not open to this account", ""),
        (KeyRefused(), "the model's provider does not accept the key", "key variable"),
        (NoCredit(), "the account at the model's provider has no credit left", "add credit"),
        (NoLogprobs(), "the model gives no log-probabilities that could be used", "mode auto"),
        (Throttled("429"), "the model's provider limits the rate of calls", ""),
    ],
)
def test_where_nothing_works_it_says_what_to_do(
    failure: ProviderError, why: str, advice: str
) -> None:
    found = probed(Model(failure.as_api_error()))
    assert found.verdict is Verdict.FAILED
    assert found.why.startswith(why)
    assert advice in found.why


@pytest.mark.parametrize("error", [Timeout("it took too long"), QuotaSpent("it is spent", 60)])
def test_a_failure_of_this_side_is_a_reason_too(error: ApiError) -> None:
    assert probed(Model(error)) == Probed(Verdict.FAILED, error.message)


def test_a_text_without_an_answer_is_told_beside_what_the_others_showed() -> None:
    found = probed(Model(result("logprobs", 0.9), ModelError("it broke"), result("logprobs", 0.8)))
    assert found.verdict is Verdict.LINES
    assert found.why == "1 of 6 texts had no answer: it broke"
    assert found.mass == pytest.approx(0.8)


def test_where_the_first_text_has_no_answer_the_others_are_not_asked() -> None:
    model = Model(ModelError("it broke"), result("logprobs", 0.9))
    assert probed(model) == Probed(Verdict.FAILED, "it broke")
    assert model.states == [STATES[0]]


def test_texts_without_an_answer_are_told_behind_why_no_better_way_works() -> None:
    answers = [result("logprobs", 0.9), ModelError("first"), ModelError("second")]
    model = Model(
        *answers,
        result("logprobs", 0.7),
        traits=replace(UNKNOWN, labels=Rung(1, Reason.UNREADABLE)),
    )
    found = probed(model)
    assert found.why == f"{Reason.UNREADABLE.words}; 2 of 6 texts had no answer: first"
    assert (found.verdict, found.calls, found.cost_usd) == (Verdict.SINGLE, 2, 0.25)
    assert found.latency_ms == pytest.approx(100)
    assert model.states == list(STATES)


def test_one_answer_is_enough_for_the_figures() -> None:
    found = probed(Model(result("logprobs", 0.9), ModelError("it broke")))
    assert (found.verdict, found.calls, found.cost_usd) == (Verdict.LINES, 6, 0.75)
    assert found.why == "5 of 6 texts had no answer: it broke"
