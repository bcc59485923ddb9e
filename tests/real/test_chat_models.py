"""Every question type, in every mode, of every real chat model: an answer, or one clear reason."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.real.conftest import Service

pytestmark = pytest.mark.real

STATE = "I was charged 42 euros twice this month. Please send the second payment back to Oslo."
CHOICE = {
    "type": "choice",
    "instructions": "Which team should handle this message?",
    "options": {
        "billing": "Payments, invoices and refunds",
        "technical": "Errors, crashes and outages",
        "account": "Sign-in, password and profile",
    },
    "escape": False,
}
SCORE = {
    "type": "score",
    "instructions": "How urgent is this message?",
    "levels": ["Can wait", "Today", "At once"],
}
NOUL = {"type": "noul", "instructions": "Does the customer ask for money back?"}
MULTI = {
    "type": "multi",
    "instructions": "Which topics does the message touch?",
    "options": {"money": "", "delivery": ""},
}
LABELS = {"choice": CHOICE, "score": SCORE, "noul": NOUL, "multi": MULTI}
EXTRACTED = {
    "text": {"type": "text", "instructions": "Which city is named?", "max_length": 40},
    "number": {"type": "number", "instructions": "Which amount is named?"},
    "integer": {"type": "integer", "instructions": "How many euros?", "min": 0, "max": 1000},
}
MANY = {
    "type": "choice",
    "instructions": "Which number comes closest to the amount in the message?",
    "options": {f"amount_{n}": f"{n} euros" for n in range(0, 105, 5)},
}
FOLLOWING = ["@smol/m", "@gateway/smol"]  # models that follow instructions, if barely
EVERY = [*FOLLOWING, "@gemma/m"]
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


def assert_sound(kind: str, answer: dict[str, Any]) -> None:
    """The answer is typed as its question asks, and its probabilities are some."""
    assert answer["calibrated"] is False
    probabilities = answer.get("probabilities", {})
    values = list(probabilities.values()) if isinstance(probabilities, dict) else probabilities
    numbers = [*values, *(answer[name] for name in ("noul", "confidence") if name in answer)]
    assert all(0 <= number <= 1 for number in numbers)
    if kind in ("choice", "score"):
        assert math.fsum(values) == pytest.approx(1)
        assert answer["confidence"] == max(values)


@pytest.mark.parametrize("model", FOLLOWING)
@pytest.mark.parametrize("mode", ["auto", "logprobs"])
@pytest.mark.parametrize("kind", LABELS)
def test_label_probabilities_of_one_question(
    service: Service, model: str, mode: str, kind: str
) -> None:
    response = service.answer(state=STATE, questions={"q": LABELS[kind]}, model=model, mode=mode)
    assert (response["mode"], response["debiased"]) == ("logprobs", True)
    assert_sound(kind, response["answers"]["q"])


@pytest.mark.parametrize("model", FOLLOWING)
def test_all_label_questions_in_one_request(service: Service, model: str) -> None:
    """Such a small model does not keep one label a line: each label gets a call of its own."""
    response = service.answer(state=STATE, questions=LABELS, model=model, debias=False)
    assert response["mode"] == "logprobs"
    for kind, answer in response["answers"].items():
        assert_sound(kind, answer)


@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("kind", LABELS)
def test_mode_verbal(service: Service, model: str, kind: str) -> None:
    questions = {"q": LABELS[kind]}
    response = service.answer(
        state=STATE, questions=questions, model=model, mode="verbal", debias=False
    )
    assert response["mode"] == "verbal"
    assert_sound(kind, response["answers"]["q"])


@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("kind", EXTRACTED)
def test_values_are_extracted_or_said_to_be_missing(
    service: Service, model: str, kind: str
) -> None:
    response = service.answer(state=STATE, questions={"q": EXTRACTED[kind]}, model=model)
    answer = response["answers"]["q"]
    assert (response["mode"], response["debiased"]) == ("verbal", False)
    assert_sound(kind, answer)
    expected = {"text": str, "number": (int, float), "integer": int}[kind]
    assert answer["value"] is None or isinstance(answer["value"], expected)


@pytest.mark.parametrize("model", FOLLOWING)
def test_a_choice_of_over_twenty_options(service: Service, model: str) -> None:
    response = service.answer(state=STATE, questions={"q": MANY}, model=model, debias=False)
    answer = response["answers"]["q"]
    assert response["mode"] == "verbal"
    assert set(answer["probabilities"]) == {*MANY["options"], "none_of_these"}
    assert_sound("choice", answer)


def test_a_base_model_that_follows_no_instructions_is_answered_by_auto(service: Service) -> None:
    response = service.answer(state=STATE, questions={"q": NOUL}, model="@gemma/m")
    assert_sound("noul", response["answers"]["q"])


def test_a_base_model_in_mode_logprobs_answers_or_fails_with_one_clear_reason(
    service: Service,
) -> None:
    status, response = service.decide(
        state=STATE, questions={"q": CHOICE}, model="@gemma/m", mode="logprobs"
    )
    if status == 200:
        assert response["mode"] == "logprobs"
        assert_sound("choice", response["answers"]["q"])
    else:
        assert (status, response["error"]["type"]) == (502, "model_error"), response
        assert response["error"]["message"].startswith("model '@gemma/m': ")


@pytest.mark.parametrize("model", FOLLOWING)
def test_images_that_a_model_cannot_see_are_refused_cleanly(service: Service, model: str) -> None:
    status, response = service.decide(
        state=STATE, questions={"q": NOUL}, model=model, images=[PIXEL], debias=False
    )
    assert status == 502 and response["error"]["type"] == "model_error", response
    assert f"model '{model}'" in response["error"]["message"]


@pytest.mark.parametrize("config", ["svc-1.0.0", "svc-1.1.0", "svc-1.2.0", "svc-1.3.0"])
def test_every_config_gets_an_answer(service: Service, config: str) -> None:
    response = service.answer(
        state=STATE, questions={"q": CHOICE}, model="@smol/m", config=config, debias=False
    )
    assert_sound("choice", response["answers"]["q"])


def test_thinking_aloud(service: Service) -> None:
    response = service.answer(
        state=STATE, questions={"q": NOUL}, model="@smol/m", think=True, debias=False
    )
    assert response["mode"] == "verbal"
    assert_sound("noul", response["answers"]["q"])
