from __future__ import annotations

import threading
from typing import Any

import pytest

from svc import limits
from svc.deadline import Deadline
from svc.engine.plans import Findings
from svc.engine.stages import Answered, close_stage, open_stage
from svc.errors import InvalidRequest, ModelError, Timeout
from svc.learning import Knowledge
from svc.providers.failures import Refused
from svc.schemas import load_decision
from tests.engine.fakes import Answerer, answering, failing, users, world
from tests.engine.models import (
    CHOICE,
    INTEGER,
    MULTI,
    NOUL,
    NUMBER,
    SCORE,
    TEXT,
    by_text,
    reasons_first,
    saying,
    user_text,
    value,
    yes,
)
from tests.preferring import PreferringModel

SKIPPED = {"skipped": True}


def asking(state: Any = "s", /, **questions: dict[str, Any]) -> dict[str, Any]:
    return {"state": state, "questions": questions, "debias": False}


def rule(answer: Any, **conditions: Any) -> dict[str, Any]:
    return {"if": conditions, "answer": answer}


def marked(**conditions: Any) -> dict[str, Any]:
    return {f"@{key}": condition for key, condition in conditions.items()}


# --- when ---


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ({"tier": "gold"}, True),
        ({"tier": ["silver", "gold"]}, True),
        ({"tier": "gold", "n": 3}, True),
        ({"tier": "gold", "n": 4}, False),
        ({"tier": "Gold"}, False),
        ({"tier": []}, False),
        ({"n": 3.0}, True),
        ({"n": True}, False),
        ({"ghost": None}, False),
        ({"none": None}, True),
    ],
)
def test_when_asks_only_where_every_field_matches(when: dict[str, Any], asked: bool) -> None:
    with world(m=yes(0.9)) as made:
        state = {"tier": "gold", "n": 3, "none": None}
        response = made.decide(asking(state, a={**NOUL, "when": when}))
        assert (response["answers"]["a"] == SKIPPED) is not asked
        assert len(made.client.calls) == asked


def test_a_skipped_question_is_left_out_of_the_call_of_the_others() -> None:
    with world(m=yes(0.9)) as made:
        skipped = {**NOUL, "instructions": "Is it polite?", "when": {"x": 2}}
        response = made.decide(asking({"x": 1}, b=skipped, a=NOUL))
        assert next(iter(response["answers"].items())) == ("b", SKIPPED)
        assert response["answers"]["a"]["noul"] == pytest.approx(0.9)
        assert not any("polite" in text for text in users(made.client.calls_to("m")))


@pytest.mark.parametrize("state", ["text", ["x"], 5, None])
def test_a_field_needs_a_state_with_fields(state: Any) -> None:
    for condition in ({"when": {"x": 1}}, {"rules": [rule(True, x=1)]}):
        with world(m=yes(0.9)) as made:
            with pytest.raises(
                InvalidRequest, match=r'question "a".*needs a state that is an object'
            ):
                made.decide(asking(state, a={**NOUL, **condition}))


def test_a_marked_field_needs_no_state_with_fields() -> None:
    with world(m=yes(0.9)) as made:
        response = made.decide(asking("text", a=NOUL, b={**NOUL, "when": marked(a=True)}))
        assert response["answers"]["b"]["noul"] == pytest.approx(0.9)


def test_a_marked_field_reads_the_answer_and_never_a_field_of_that_name() -> None:
    with world(m=yes(0.9)) as made:
        state = {"@a": False}
        response = made.decide(asking(state, a=NOUL, b={**NOUL, "when": marked(a=False)}))
        assert response["answers"]["b"] == {**SKIPPED, "stage": 1}


# --- rules ---


@pytest.mark.parametrize(
    ("question", "label", "answer"),
    [
        (
            CHOICE,
            "access",
            {"choice": "access", "probabilities": {"billing": 0, "access": 1, "none_of_these": 0}},
        ),
        (
            CHOICE,
            "none_of_these",
            {
                "choice": "none_of_these",
                "probabilities": {"billing": 0, "access": 0, "none_of_these": 1},
            },
        ),
        (SCORE, 2, {"score": 2, "probabilities": [0, 0, 1]}),
        (NOUL, False, {"noul": 0}),
        (MULTI, ["delay"], {"selected": ["delay"], "probabilities": {"refund": 0, "delay": 1}}),
        (MULTI, [], {"selected": [], "probabilities": {"refund": 0, "delay": 0}}),
        (TEXT, "Oslo", {"value": "Oslo"}),
        (NUMBER, 2.5, {"value": 2.5}),
        ({**INTEGER, "nullable": True}, None, {"value": None}),
    ],
)
def test_a_rule_has_all_probability_on_its_answer(
    question: dict[str, Any], label: Any, answer: dict[str, Any]
) -> None:
    with world(m=failing(Refused())) as made:
        response = made.decide(asking({"x": 1}, a={**question, "rules": [rule(label, x=1)]}))
        own = {"confidence": 1.0, "calibrated": False, "rule": 0}
        expected = {"type": question["type"], **answer, **own}
        assert response["answers"]["a"] == expected
        assert made.client.calls == []
        assert (response["cost_usd"], response["latency_ms"], response["cached"]) == (0, 0, False)


def test_the_first_rule_that_holds_answers_with_its_index() -> None:
    rules = [rule(True, x={"gt": 5}), rule(False, x=1, y=2), rule(True, x=1), rule(False, x=1)]
    with world(m=failing(Refused())) as made:
        answer = made.decide(asking({"x": 1}, a={**NOUL, "rules": rules}))["answers"]["a"]
        assert (answer["rule"], answer["noul"]) == (2, 1.0)


def test_when_no_rule_holds_the_model_is_asked() -> None:
    with world(m=yes(0.9)) as made:
        answer = made.decide(asking({"x": 1}, a={**NOUL, "rules": [rule(False, x=2)]}))["answers"]
        assert "rule" not in answer["a"]
        assert answer["a"]["noul"] == pytest.approx(0.9)


def test_rules_are_checked_after_when() -> None:
    question = {**NOUL, "when": {"x": 2}, "rules": [rule(True, x=1)]}
    with world(m=failing(Refused())) as made:
        assert made.decide(asking({"x": 1}, a=question))["answers"]["a"] == SKIPPED


def test_a_rule_abstains_from_nothing_and_guarantees_nothing() -> None:
    question = {**CHOICE, "min_confidence": 1, "coverage": 0.9, "rules": [rule("access", x=1)]}
    with world(m=failing(Refused())) as made:
        answer = made.decide(asking({"x": 1}, a=question))["answers"]["a"]
        assert (answer["abstain"], answer["coverage"], answer["guaranteed"]) == (False, 0.9, False)
        assert "set" not in answer


def test_every_model_id_is_resolved_even_when_rules_answer_everything() -> None:
    with world(m=yes(0.9)) as made:
        body = asking({"x": 1}, a={**NOUL, "rules": [rule(True, x=1)]})
        with pytest.raises(InvalidRequest, match="nowhere"):
            made.decide({**body, "model": ["@here/m", "@nowhere/m"]})
        assert not made.journal.records


# --- @key: what an answer reads as ---

BILLING = answering(PreferringModel({"billing": 9.0, "high": 9.0}, yes=0.8))


@pytest.mark.parametrize(
    ("question", "answerer", "matching", "other"),
    [
        (CHOICE, BILLING, "billing", "access"),
        (CHOICE, BILLING, {"starts_with": "bill"}, {"contains": "x"}),
        (SCORE, BILLING, 2, 1),
        (SCORE, BILLING, {"gte": 2}, {"lt": 2}),
        (NOUL, yes(0.5), True, False),
        (NOUL, yes(0.49), False, True),
        (NOUL, yes(0.9), [True], [False, 1]),
        (MULTI, BILLING, {"contains": "refund"}, {"contains": "ref"}),
        (MULTI, BILLING, [["refund", "delay"]], ["refund"]),
        (TEXT, saying(value("Oslo")), "Oslo", "oslo"),
        (TEXT, saying(value("Oslo")), {"contains": "OS"}, {"starts_with": "o"}),
        (NUMBER, saying(value(2.5)), {"gt": 2}, {"gt": 2.5}),
        (INTEGER, saying(value(3)), 3.0, "3"),
        (TEXT, saying(value(7)), None, "7"),
        (INTEGER, saying(value("none")), {"exists": True}, {"gte": 0}),
    ],
)
def test_an_answer_reads_as_its_label(
    question: dict[str, Any], answerer: Answerer, matching: Any, other: Any
) -> None:
    last = {
        **NOUL,
        "rules": [
            {"if": marked(a=other), "answer": False},
            {"if": marked(a=matching), "answer": True},
        ],
    }
    with world(m=answerer) as made:
        answer = made.decide(asking(a=question, b=last))["answers"]["b"]
        assert (answer["rule"], answer["stage"]) == (1, 1)


def test_a_rules_answer_reads_like_a_models() -> None:
    first = {**MULTI, "rules": [rule(["delay", "refund"], x=1)]}
    last = {
        **NOUL,
        "when": {"@a": [["refund", "delay"]]},
        "rules": [{"if": marked(a={"contains": "delay"}), "answer": True}],
    }
    with world(m=failing(Refused())) as made:
        assert made.decide(asking({"x": 1}, a=first, b=last))["answers"]["b"]["rule"] == 0


def test_what_contains_may_look_through_is_bounded_for_all_stages_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SEARCHED_CHARS", 100)
    always = rule(True, x={"exists": True})
    first = {**NOUL, "rules": [rule(True, x={"contains": "1"}), always]}
    again = {**first, "depends_on": ["a"]}
    other = {**NOUL, "rules": [rule(True, x={"contains": "2"}), always], "depends_on": ["a"]}
    state = {"x": "-" * 60}
    with world(m=failing(Refused())) as made:
        assert made.decide(asking(state, a=first, b=again))["answers"]["b"]["rule"] == 1
        with pytest.raises(InvalidRequest, match="have rules whose contains look through"):
            made.decide(asking(state, a=first, b=other))


# --- stages ---


def test_each_stage_is_one_call_and_sees_the_answers_it_depends_on_without_their_keys() -> None:
    questions = {
        "team_key": CHOICE,
        "bad_key": {**SCORE, "instructions": "How bad\nis it?"},
        "topics_key": MULTI,
        "free_key": {**NOUL, "instructions": "Is it free?"},
        "last_key": {**NOUL, "depends_on": ["team_key", "bad_key", "topics_key"]},
    }
    with world(m=BILLING) as made:
        response = made.decide(asking("s", **questions))
        first, second = users(made.client.calls_to("m"))
    assert [answer["stage"] for answer in response["answers"].values()] == [0, 0, 0, 0, 1]
    assert "Earlier answers" not in first
    assert (
        "Earlier answers:\n- Which team?: billing\n- How bad is it?: high\n"
        "- Which topics?: refund, delay\n" in second
    )
    assert "Is it free?" not in second
    assert "_key" not in first + second


def test_extracted_answers_are_shown_as_json() -> None:
    first = saying(value('Oslo "N"\nline'), value(3), value("none"))
    questions = {"a": TEXT, "b": INTEGER, "c": {**NUMBER, "instructions": "What cost?"}}
    with world(m=by_text("Earlier answers", yes(0.9), first)) as made:
        made.decide(asking("s", **questions, d={**NOUL, "depends_on": ["a", "b", "c"]}))
        text = users(made.client.calls_to("m"))[-1]
    assert '- Which city?: "Oslo \\"N\\"\\nline"\n- How many?: 3\n- What cost?: null\n' in text


def test_a_request_without_dependencies_names_no_stage() -> None:
    with world(m=yes(0.9)) as made:
        assert "stage" not in made.decide(asking(a=NOUL))["answers"]["a"]


def test_skipping_goes_along_dependencies_and_keeps_the_stage() -> None:
    questions = {
        "a": {**NOUL, "when": {"x": 2}},
        "b": {**NOUL, "depends_on": ["a"], "rules": [rule(True, x=1)]},
        "c": {**NOUL, "when": marked(b=True)},
        "d": {**NOUL, "rules": [{"if": marked(c={"exists": False}), "answer": True}]},
        "free": NOUL,
    }
    with world(m=yes(0.9)) as made:
        answers = made.decide(asking({"x": 1}, **questions))["answers"]
        assert [answers[key] for key in "abcd"] == [{**SKIPPED, "stage": n} for n in range(4)]
        assert answers["free"]["stage"] == 0
        assert len(made.client.calls) == 1


def test_a_stage_that_rules_answer_makes_no_call_but_is_seen_by_the_next() -> None:
    questions = {
        "a": {**CHOICE, "rules": [rule("access", x=1)]},
        "b": {**NOUL, "depends_on": ["a"]},
    }
    with world(m=yes(0.9)) as made:
        answers = made.decide(asking({"x": 1}, **questions))["answers"]
        assert (answers["a"]["stage"], answers["a"]["rule"]) == (0, 0)
        (text,) = users(made.client.calls_to("m"))
        assert "- Which team?: access" in text


def chain(length: int) -> dict[str, dict[str, Any]]:
    """Questions that each depend on the one before."""
    return {
        f"q{i}": {
            **NOUL,
            "instructions": f"Is it so in {i}?",
            "depends_on": [f"q{i - 1}"] if i else [],
        }
        for i in range(length)
    }


def test_eight_stages_are_eight_calls() -> None:
    with world(m=yes(0.9)) as made:
        answers = made.decide(asking("s", **chain(8)))["answers"]
        assert [answer["stage"] for answer in answers.values()] == list(range(8))
        assert len(made.client.calls) == 8


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (chain(9), 'question "q8": needs a stage more than the 8'),
        ({"a": {**NOUL, "depends_on": ["a"]}}, 'question "a": depends on itself'),
        ({"a": {**NOUL, "when": marked(a=True)}}, 'question "a": depends on itself'),
        ({"a": {**NOUL, "depends_on": ["b"]}}, 'question "a": depends on "b"'),
        ({"a": {**NOUL, "when": marked(ghost=1)}}, 'question "a": depends on "ghost"'),
        (
            {"a": {**NOUL, "depends_on": ["b"]}, "b": {**NOUL, "depends_on": ["a"]}},
            "cycle of dependencies",
        ),
        ({"a": {**NOUL, "depends_on": "b"}, "b": NOUL}, 'question "a" depends_on: must be a list'),
    ],
)
def test_unsound_dependencies_are_refused_before_any_call(
    questions: dict[str, Any], message: str
) -> None:
    with world(m=yes(0.9)) as made:
        with pytest.raises(InvalidRequest) as error:
            made.decide(asking("s", **questions))
        assert message in error.value.message
        assert made.client.calls == []


def test_a_failing_stage_fails_the_request() -> None:
    with world(m=by_text("Earlier answers", failing(Refused()), yes(0.9))) as made:
        with pytest.raises(ModelError):
            made.decide(asking("s", **chain(2)))
        assert not made.journal.records


def test_stages_are_cached_only_when_every_call_was() -> None:
    with world(100, m=yes(0.9)) as made:
        made.decide(asking("s", **chain(2)))
        assert made.decide(asking("s", **chain(2)))["cached"] is True
        half = made.decide(asking("s", **chain(3)))
        assert (half["cached"], half["cost_usd"]) == (False, 0.001)
        assert half["latency_ms"] > 0


# --- thinking ---


def test_a_question_that_thinks_has_a_verbal_call_of_its_own_beside_the_others() -> None:
    meeting = threading.Barrier(3)

    def met(name: str, call: Any) -> Any:
        meeting.wait(10)  # all three are under way at once, or nobody goes on
        return yes(0.9)(name, call)

    questions = {
        "a": NOUL,
        "deep": {**NOUL, "instructions": "Is it sound?", "think": True},
        "deeper": {**NOUL, "instructions": "Is it true?", "think": True},
    }
    with world(m=met) as made:
        response = made.decide(asking("s", **questions))
        assert response["mode"] == "verbal"
        calls = {
            next(words for words in ("urgent", "sound", "true") if words in user_text(call)): call
            for call in made.client.calls_to("m")
        }
    assert {words: call.think for words, call in calls.items()} == {
        "urgent": False,
        "sound": True,
        "true": True,
    }
    assert calls["urgent"].logprobs
    assert reasons_first(calls["sound"])
    assert all(user_text(call).count("Question: ") == 1 for call in calls.values())
    assert not any("Question 2" in user_text(call) for call in calls.values())


def test_a_thinking_request_still_asks_its_questions_together() -> None:
    with world(m=yes(0.9)) as made:
        made.decide({**asking("s", a=NOUL, b={**NOUL, "instructions": "?"}), "think": True})
        (call,) = made.client.calls_to("m")
        assert call.think


# --- the deadline ---


class Counting(Deadline):
    """A deadline that passes once it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__(60.0)
        self.looks = looks

    def check(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise Timeout("the request exceeded its deadline")


def test_the_deadline_is_looked_at_before_the_rules_of_each_question() -> None:
    """What they look through may take long."""
    questions = {f"q{number}": {**NOUL, "rules": [rule(True, tier="gold")]} for number in range(9)}
    request, answered = load_decision(asking({"tier": "gold"}, **questions)), Answered()
    with pytest.raises(Timeout):
        open_stage(request, 0, answered, Counting(4))
    assert len(answered.answers) == 4
    open_stage(request, 0, Answered(), Counting(9))


def test_the_deadline_is_looked_at_before_the_answer_to_each_question() -> None:
    """To make a prediction set may take long."""
    request = load_decision(asking(**{f"q{number}": NOUL for number in range(9)}))
    answered = Answered()
    stage = open_stage(request, 0, answered, Deadline(60.0))
    with pytest.raises(Timeout):
        close_stage(stage, Findings(), Knowledge(), answered, Counting(4))
    assert len(answered.answers) == 4
