"""Plans over real models: chat models, a gateway and a decision model together."""

from __future__ import annotations

import pytest

from tests.real.conftest import Service
from tests.real.test_chat_models import CHOICE, EXTRACTED, LABELS, NOUL, STATE, assert_sound

pytestmark = pytest.mark.real

QUESTIONS = {"team": CHOICE, "refund": NOUL}
SMOL, GATEWAY, GEMMA, SPARROW = "@smol/m", "@gateway/smol", "@gemma/m", "@sparrow/nano"
NOBODY = "@nobody/m"


def test_a_chain_goes_on_to_a_model_that_answers(service: Service) -> None:
    response = service.answer(state=STATE, questions=QUESTIONS, model=[NOBODY, SPARROW])
    assert response["model"] == SPARROW


def test_a_chain_without_an_answer_names_each_model_and_what_went_wrong(service: Service) -> None:
    message = service.failure(
        state=STATE, questions={"q": EXTRACTED["text"]}, model=[NOBODY, SPARROW]
    )
    assert "model '@nobody/m': the model's provider failed or could not be reached" in message
    assert "model '@sparrow/nano': a decision server has no text questions" in message


def test_a_council_blends_a_chat_model_with_a_decision_model(service: Service) -> None:
    response = service.answer(
        state=STATE, questions=QUESTIONS, model={"council": [SMOL, SPARROW]}, debias=False
    )
    assert response["model"] == f"{SMOL},{SPARROW}"
    assert response["mode"] == "logprobs"
    assert all(0 < answer["agreement"] <= 1 for answer in response["answers"].values())


def test_a_cascade_escalates_from_a_decision_model(service: Service) -> None:
    response = service.answer(
        state=STATE,
        questions={"team": CHOICE},
        model={"cascade": [SPARROW, SMOL], "escalate_below": 0.999},
        debias=False,
    )
    assert response["answers"]["team"]["answered_by"] == SMOL


def test_a_race_is_won_by_the_first_answer(service: Service) -> None:
    response = service.answer(
        state=STATE, questions=QUESTIONS, model={"race": [NOBODY, SMOL, SPARROW]}, debias=False
    )
    assert response["model"] in (SMOL, SPARROW)


@pytest.mark.parametrize("kind", LABELS)
def test_a_decision_model_answers_label_questions(service: Service, kind: str) -> None:
    response = service.answer(state=STATE, questions={"q": LABELS[kind]}, model=SPARROW)
    assert (response["mode"], response["model"]) == ("logprobs", SPARROW)
    assert_sound(kind, response["answers"]["q"])


def test_a_decision_model_sees_the_same_whatever_the_order(service: Service) -> None:
    pair = service.answer(state=STATE, questions={"q": CHOICE}, model=SPARROW)
    one = service.answer(state=STATE, questions={"q": CHOICE}, model=SPARROW, debias=False)
    found = pair["answers"]["q"]["probabilities"], one["answers"]["q"]["probabilities"]
    assert found[0] == pytest.approx(found[1], abs=0.02)


def test_a_decision_model_takes_no_images(service: Service) -> None:
    message = service.failure(
        state=STATE, questions={"q": NOUL}, model=SPARROW, images=["https://x.example/a.png"]
    )
    assert message == "model '@sparrow/nano': a server of the criteria shape takes no images"
