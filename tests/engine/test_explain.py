from __future__ import annotations

import json
import time
from typing import Any

import pytest

from svc import limits
from svc.errors import InvalidRequest
from svc.jsontext import Literal
from svc.providers.failures import Refused
from svc.providers.replies import Completion
from tests.engine.fakes import Answerer, failing, users, world
from tests.engine.models import (
    CHOICE,
    MULTI,
    NOUL,
    TEXT,
    babbling,
    by_text,
    in_mode,
    in_order,
    saying,
    user_text,
    value,
    yes,
)

PROCESSOR_S = 0.6
STATE = {"subject": "refund", "body": "please", "n": 1}


def asking(state: Any = STATE, /, **questions: dict[str, Any]) -> dict[str, Any]:
    return {"state": state, "questions": questions or {"a": NOUL}, "explain": True, "debias": False}


def moved_by(field: str, usual: float, without: float) -> Answerer:
    """A model that is less sure where a field of the state is missing."""
    return by_text(f'"{field}":', yes(usual), yes(without))


def test_each_field_has_the_drop_that_leaving_it_out_brings() -> None:
    with world(m=moved_by("subject", 0.9, 0.3)) as made:
        answer = made.decide(asking())["answers"]["a"]
        assert answer["explain"] == pytest.approx({"subject": 0.6, "body": 0.0, "n": 0.0})
        assert list(answer["explain"]) == ["subject", "body", "n"]
        assert len(made.client.calls) == 1 + 3


@pytest.mark.parametrize("orders", [(failing(Refused()), yes(0.3)), (yes(0.9), failing(Refused()))])
def test_an_answer_in_one_of_two_orders_has_no_drops(orders: tuple[Answerer, Answerer]) -> None:
    """The calls without a field show the original order, and it may be the other that answered."""
    with world(m=in_order(*orders)) as made:
        response = made.decide({**asking(), "debias": True})
        assert response["debiased"] is False
        assert response["answers"]["a"]["explain"] == {}


def test_the_drop_is_of_the_answer_that_was_given() -> None:
    with world(m=moved_by("subject", 0.2, 0.9)) as made:
        answer = made.decide(asking())["answers"]["a"]
        assert answer["explain"]["subject"] == pytest.approx(0.7)  # P(no) fell from 0.8 to 0.1


def test_a_field_that_speaks_against_the_answer_has_a_negative_drop() -> None:
    with world(m=moved_by("subject", 0.7, 0.9)) as made:
        assert made.decide(asking())["answers"]["a"]["explain"]["subject"] == pytest.approx(-0.2)


def test_one_field_is_left_out_at_a_time_and_the_rest_stays_as_it_was() -> None:
    with world(m=yes(0.9)) as made:
        made.decide(asking())
        texts = users(made.client.calls_to("m"))
    for rest in (
        '{"body":"please","n":1}',
        '{"subject":"refund","n":1}',
        '{"subject":"refund","body":"please"}',
    ):
        assert sum(f"\n{rest}\n" in text for text in texts) == 1


def test_it_asks_in_the_original_order_and_compares_with_that_order() -> None:
    with world(m=in_order(yes(0.9), yes(0.7))) as made:
        response = made.decide({**asking(), "debias": True})
        assert response["answers"]["a"]["noul"] == pytest.approx(0.8)
        assert response["answers"]["a"]["explain"]["n"] == pytest.approx(0.0)
        assert response["debiased"] is True
        assert len(made.client.calls) == 2 + 3


def test_it_asks_in_the_mode_that_answered() -> None:
    reply = saying({"yes": 0.9, "no": 0.1}, value("Oslo"))
    with world(m=in_mode(yes(0.2), reply)) as made:
        response = made.decide(asking(STATE, a=NOUL, t=TEXT))
        assert response["mode"] == "verbal"
        assert response["answers"]["a"]["explain"]["n"] == pytest.approx(0.0)
        assert not any(call.logprobs for call in made.client.calls_to("m"))


def test_the_mode_is_that_of_the_answers_alone() -> None:
    lines = by_text('"subject":', yes(0.9), babbling)
    with world(m=in_mode(lines, yes(0.4))) as made:
        response = made.decide(asking())
        assert response["mode"] == "logprobs"
        assert list(response["answers"]["a"]["explain"]) == ["body", "n"]


def test_at_most_12_fields_are_left_out() -> None:
    with world(m=yes(0.9)) as made:
        answer = made.decide(asking({f"f{i}": i for i in range(15)}))["answers"]["a"]
        assert list(answer["explain"]) == [f"f{i}" for i in range(12)]


def test_values_are_not_explained_nor_asked_again() -> None:
    with world(m=saying({"yes": 0.9, "no": 0.1}, value("Oslo"))) as made:
        answers = made.decide(asking(STATE, a=NOUL, t=TEXT))["answers"]
        assert "explain" not in answers["t"]
        assert set(answers["a"]["explain"]) == set(STATE)
        assert sum("Which city?" in text for text in users(made.client.calls_to("m"))) == 1


def test_values_alone_take_no_further_call() -> None:
    with world(m=saying(value("Oslo"))) as made:
        made.decide(asking(STATE, t=TEXT))
        assert len(made.client.calls) == 1


def test_what_no_model_answered_is_not_explained() -> None:
    questions = {
        "ruled": {**NOUL, "rules": [{"if": {"n": 1}, "answer": True}]},
        "skipped": {**NOUL, "when": {"n": 2}},
        "asked": NOUL,
    }
    with world(m=yes(0.9)) as made:
        answers = made.decide(asking(STATE, **questions))["answers"]
        assert [key for key, answer in answers.items() if "explain" in answer] == ["asked"]


@pytest.mark.parametrize("state", ["text", ["x"], 5, None])
def test_a_state_without_fields_takes_no_further_call(state: Any) -> None:
    with world(m=yes(0.9)) as made:
        made.decide(asking(state))
        assert len(made.client.calls) == 1


def test_a_field_whose_call_failed_is_left_out() -> None:
    with world(m=by_text('"subject":', yes(0.9), failing(Refused()))) as made:
        assert list(made.decide(asking())["answers"]["a"]["explain"]) == ["body", "n"]


def test_the_cost_and_the_tokens_are_counted() -> None:
    with world(m=yes(0.9)) as made:
        decision = made.decision(asking())
        assert decision.cost_usd == 0.004
        assert decision.input_tokens == 40


def test_a_cached_decision_has_its_explanation_cached_too() -> None:
    with world(100, m=moved_by("subject", 0.9, 0.3)) as made:
        first, second = made.decide(asking()), made.decide(asking())
        assert second["cached"] is True
        assert second["answers"] == first["answers"]
        assert made.decide({**asking(), "explain": False})["cached"] is True


def test_it_cannot_be_used_with_stages() -> None:
    with world(m=yes(0.9)) as made:
        with pytest.raises(InvalidRequest, match=r"explain.*depends_on"):
            made.decide(asking(STATE, a=NOUL, b={**NOUL, "depends_on": ["a"]}))


@pytest.mark.parametrize("questions", [1, 50])
def test_the_answers_repeat_a_bounded_amount_of_field_names(questions: int) -> None:
    """Each name stands in the answer to each question: 148,000 characters took 38 MB in 64."""
    asked = {f"q{number}": NOUL for number in range(questions)}
    fields, letter = limits.EXPLAIN_FIELDS, "\U00020000"
    longest = limits.EXPLAIN_NAMES_CHARS // questions
    names = [f"{letter * (longest // fields - 2)}{number:02}" for number in range(fields)]
    names[0] += letter * (longest - sum(map(len, names)))
    with world(m=yes(0.9)) as made:
        most = made.decide(asking(dict.fromkeys(names, 1), **asked))
        assert len(json.dumps(most, ensure_ascii=False).encode()) < 500_000
        # Of fields that are not left out no name is repeated, and values never are.
        made.decide(asking({**dict.fromkeys(names, "x" * 100), "y" * 20_000: 1}, **asked))
        with pytest.raises(InvalidRequest, match=r"explain: would repeat .* 100,000"):
            made.decide(asking(dict.fromkeys([names[0] + "z", *names[1:]], 1), **asked))


def test_every_answer_of_a_plan_is_explained_by_a_model_that_gave_it() -> None:
    cheap = by_text(
        "Is it polite?", saying({"yes": 0.95, "no": 0.05}, {"yes": 0.6, "no": 0.4}), yes(0.95)
    )
    other = {**NOUL, "instructions": "Is it polite?"}
    with world(a=cheap, b=moved_by("subject", 0.9, 0.3)) as made:
        plan = {"cascade": ["@here/a", "@here/b"]}
        body = {**asking(STATE, a=NOUL, b=other), "model": plan, "mode": "verbal"}
        answers = made.decide(body)["answers"]
        assert answers["a"]["explain"]["subject"] == pytest.approx(0.0)
        assert answers["b"]["explain"]["subject"] == pytest.approx(0.6)
        assert len(made.client.calls_to("a")) == 1 + 3
        assert len(made.client.calls_to("b")) == 1 + 3


def test_a_councils_explanation_is_its_first_members() -> None:
    with world(a=moved_by("subject", 0.9, 0.3), b=in_mode(babbling, yes(0.7))) as made:
        body = {**asking(), "model": {"council": ["@here/a", "@here/b"]}}
        answer = made.decide(body)["answers"]["a"]
        assert answer["explain"]["subject"] == pytest.approx(0.6)
        assert all(call.logprobs for call in made.client.calls_to("a"))


def test_questions_that_think_think_again_without_the_field() -> None:
    with world(m=yes(0.9)) as made:
        deep = {**NOUL, "instructions": "Is it sound?", "think": True}
        answers = made.decide(asking(STATE, a=NOUL, deep=deep))["answers"]
        assert set(answers["deep"]["explain"]) == set(STATE)
        thinking = [call for call in made.client.calls_to("m") if call.think]
        assert len(thinking) == 1 + 3
        assert all("Is it urgent?" not in user_text(call) for call in thinking)


def test_every_label_type_is_explained_by_the_probability_of_its_answer() -> None:
    def answer(_name: str, call: Any) -> Completion:
        sure = '"subject":' in user_text(call)
        choice = {"A": 0.8, "B": 0.1, "C": 0.1} if sure else {"A": 0.2, "B": 0.7, "C": 0.1}
        multi = {"A": 0.9, "B": 0.2} if sure else {"A": 0.4, "B": 0.3}
        return Completion(json.dumps({"q1": choice, "q2": multi}))

    with world(m=answer) as made:
        body = {**asking(STATE, a=CHOICE, b=MULTI), "mode": "verbal"}
        answers = made.decide(body)["answers"]
        assert answers["a"]["explain"]["subject"] == pytest.approx(0.6)
        assert answers["b"]["explain"]["subject"] == pytest.approx(0.4)  # 0.8 less 0.4


@pytest.mark.parametrize(("deep", "calls"), [(0, 1 + 12), (1, 2 + 24)])
def test_its_calls_count_towards_the_limit(deep: int, calls: int) -> None:
    questions = {f"k{i}": {**NOUL, "instructions": f"{i}?", "think": i < deep} for i in range(2)}
    state = {f"f{i}": i for i in range(12)}
    with world(m=yes(0.9)) as made:
        made.decide(asking(state, **questions))
        assert len(made.client.calls) == calls
    full = {"model": [f"@here/{i}" for i in range(64)]}
    with world(m=yes(0.9)) as made:
        with pytest.raises(InvalidRequest, match=str(64 * (1 + deep) + 12 * (1 + deep))):
            made.decide({**asking(state, **questions), **full})
        assert made.client.calls == []


def test_each_field_is_written_once_for_all_calls() -> None:
    """In processor time; the whole state was written anew for each call, for 2 s and more."""
    long: list[object] = [0] * 70_000
    state = {"long": [*long, Literal("1e400")], **{f"f{number}": 1 for number in range(9)}}
    asked = asking(state, a=NOUL, b={**NOUL, "think": True})
    with world(m=by_text("Think", saying('{"b": 0.9}'), yes(0.9))) as made:
        before = time.thread_time()
        made.decide(asked)
        assert time.thread_time() - before < PROCESSOR_S
        assert len(made.client.calls) == 2 * 11


def test_no_more_calls_are_prepared_than_the_request_may_still_make() -> None:
    """A prompt that is not sent takes as long to write as one that is: 600 took 3 s."""
    names = [f"m{n}" for n in range(20)]
    questions = {f"q{n}": {**NOUL, "instructions": f"Is it {n}?"} for n in range(20)}
    state = {f"f{n}": "x" for n in range(12)}

    def sure_of(n: int) -> Answerer:
        return lambda name, call: Completion(
            json.dumps(
                {
                    f"q{place}": {"yes": 0.99, "no": 0.01}
                    if f"Is it {n}?" in line
                    else {"yes": 0.5, "no": 0.5}
                    for place, line in enumerate(
                        [one for one in user_text(call).splitlines() if "Is it " in one], 1
                    )
                }
            )
        )

    with world(**{name: sure_of(n) for n, name in enumerate(names)}) as made:
        plan = {"cascade": [f"@here/{name}" for name in names], "escalate_below": 0.9}
        body = {**asking(state, **questions), "model": plan, "mode": "verbal"}
        answers = made.decide(body)["answers"]
        told = sum(len(answer["explain"]) for answer in answers.values())
        assert 0 < told <= limits.MODEL_CALLS - len(names)
        # The first fields are whole.
        assert all("f0" in answer["explain"] for answer in answers.values())


def test_the_probabilities_that_a_plan_may_read_are_bounded() -> None:
    """64 models, asked for 16,000 options each, took 4.5 s of a processor."""
    names = dict.fromkeys((f"o{n}" for n in range(100)), "")
    questions = {f"q{n}": {**CHOICE, "options": names, "escape": False} for n in range(50)}
    body = {"state": "x", "questions": questions, "debias": False}
    with world(m=babbling) as made:
        plan = {**body, "model": ["@here/m"] * 41}
        with pytest.raises(InvalidRequest, match=r"41 models asked for 5,000 .* at most 200,000"):
            made.decide(plan)
