from __future__ import annotations

from typing import Any

import pytest

from svc.engine.plans import Plan
from svc.errors import InvalidJson, InvalidRequest
from svc.schemas import load_decision

NOUL = {"type": "noul", "instructions": "Is it spam?"}
CHOICE = {"type": "choice", "instructions": "Which?", "options": {"a": "", "b": ""}}


def body(**fields: Any) -> dict[str, Any]:
    return {"state": "hello", "questions": {"spam": NOUL}, **fields}


def refusal(value: Any) -> str:
    with pytest.raises(InvalidRequest) as error:
        load_decision(value)
    return error.value.message


def test_unknown_fields_of_a_plan_are_named_in_few_words() -> None:
    plan = {"council": ["@a/b", "@a/c"], "x" * 100_000: 1, "\x1b[2J": 1}
    message = refusal(body(model=plan))
    assert "a council has no field" in message and len(message) < 1_000 and "\x1b" not in message


def test_a_request_keeps_the_order_of_its_questions() -> None:
    questions = dict.fromkeys(["z", "a", "m"], NOUL)
    assert list(load_decision(body(questions=questions)).questions) == ["z", "a", "m"]


def test_what_a_request_leaves_open_is_none() -> None:
    request = load_decision(body())
    assert (request.plan, request.mode, request.debias, request.config) == (None,) * 4


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("as it is ", "as it is "),
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
        ([], "[]"),
        (7, "7"),
        (None, "null"),
        ("", ""),
    ],
)
def test_a_state_is_any_json_value(state: Any, text: str) -> None:
    assert load_decision(body(state=state)).state.text == text


def test_a_state_at_the_limit_passes_and_one_character_more_is_refused_with_the_number() -> None:
    assert load_decision(body(state="x" * 150_000))
    assert "150,001 characters, at most 150,000" in refusal(body(state="x" * 150_001))


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_a_body_that_is_no_object_is_invalid_json(value: Any) -> None:
    with pytest.raises(InvalidJson):
        load_decision(value)


def test_a_missing_state_and_missing_questions_are_named() -> None:
    assert refusal({}) == "state: is required; questions: is required"


@pytest.mark.parametrize("mode", ["fast", "", None, 3, ["auto"], "AUTO"])
def test_an_unknown_mode_is_invalid_json_and_lists_the_known_ones(mode: Any) -> None:
    if mode is None:
        assert "mode: must not be null" in refusal(body(mode=mode))
        return
    with pytest.raises(InvalidJson, match="auto, logprobs, verbal"):
        load_decision(body(mode=mode))


@pytest.mark.parametrize("kind", ["yesno", "", 5, [], {}, "NOUL"])
def test_an_unknown_type_is_invalid_json_and_names_the_question(kind: Any) -> None:
    with pytest.raises(InvalidJson, match=r'question "spam".*noul'):
        load_decision(body(questions={"spam": {**NOUL, "type": kind}}))


def test_a_missing_type_is_an_invalid_request() -> None:
    assert 'question "spam" type: is missing' in refusal(
        body(questions={"spam": {"instructions": "x"}})
    )


@pytest.mark.parametrize("count", [0, 65])
def test_too_few_or_too_many_questions_are_refused_with_the_bounds(count: int) -> None:
    message = refusal(body(questions={str(i): NOUL for i in range(count)}))
    assert message == f"questions: needs 1 to 64 questions, has {count}"


def test_64_questions_pass() -> None:
    assert len(load_decision(body(questions={str(i): NOUL for i in range(64)})).questions) == 64


@pytest.mark.parametrize("questions", [None, [], "x", [NOUL]])
def test_questions_must_be_an_object(questions: Any) -> None:
    assert refusal(body(questions=questions)).startswith("questions: must")


@pytest.mark.parametrize("key", ["", "a\x00b", "\x1f", "\x7f", "\x85", "line\nbreak"])
def test_a_question_key_with_control_characters_is_refused(key: str) -> None:
    assert "control characters" in refusal(body(questions={key: NOUL}))


def test_a_question_that_is_no_object_is_named() -> None:
    assert refusal(body(questions={"spam": "noul"})) == 'question "spam": must be an object'


def test_every_mistake_is_named_up_to_a_handful() -> None:
    questions = {f"q{i}": {**CHOICE, "optoins": {}} for i in range(8)}
    message = refusal(body(questions=questions))
    assert 'question "q0" optoins: unknown field' in message
    assert message.endswith("and 3 more")


def test_unknown_fields_are_named() -> None:
    assert refusal(body(min_confidense=0.5)) == "min_confidense: unknown field"


def test_the_total_question_text_is_limited() -> None:
    long = {"type": "noul", "instructions": "x" * 60_000}
    message = refusal(body(questions={"a": long, "b": long}))
    assert "questions: hold 120,002 characters of text, at most 100,000" in message


def test_the_labels_of_examples_count_towards_the_text() -> None:
    long = {"type": "text", "instructions": "Which?", "max_length": 2_000}
    example = {"state": "s", "label": "x" * 2_000}
    questions = {f"q{i}": {**long, "examples": [example] * 10} for i in range(6)}
    assert "at most 100,000" in refusal(body(questions=questions))


def test_a_mistake_in_a_question_is_named_whatever_its_key() -> None:
    message = refusal(body(questions={"_schema": {**NOUL, "optoins": 1}}))
    assert message == 'question "_schema" optoins: unknown field'


@pytest.mark.parametrize("config", ["svc-9.9.9", "", 1, "latest"])
def test_an_unknown_config_is_refused_with_the_known_ones(config: Any) -> None:
    assert "svc-1.0.0, svc-1.1.0, svc-1.2.0, svc-1.3.0, svc-latest" in refusal(body(config=config))


@pytest.mark.parametrize("debias", ["true", 1, 0, "yes", None, "AUTO"])
def test_debias_must_be_a_boolean(debias: Any) -> None:
    assert "debias: must" in refusal(body(debias=debias))


@pytest.mark.parametrize("project", ["", "  ", 5, "a\nb", "x" * 201])
def test_a_project_must_be_a_plain_name(project: Any) -> None:
    assert refusal(body(project=project)).startswith("project: must")


def test_a_model_is_an_id_or_a_list_of_ids() -> None:
    assert load_decision(body(model="a/b")).plan == Plan("chain", ("a/b",))
    assert load_decision(body(model=["a/b", "@c/d"])).plan == Plan("chain", ("a/b", "@c/d"))


@pytest.mark.parametrize("model", [[], "", " ", 5, [1], ["a", ""], {}, None, [["a"]]])
def test_a_model_of_another_form_is_refused(model: Any) -> None:
    assert refusal(body(model=model)).startswith("model: ")


def test_logprobs_cannot_answer_a_choice_of_over_20_options() -> None:
    many = {**CHOICE, "options": {str(i): "" for i in range(21)}}
    questions = {"fine": NOUL, "intent": many}
    message = refusal(body(questions=questions, mode="logprobs"))
    assert 'question "intent" mode: logprobs cannot' in message
    assert "fine" not in message
    assert load_decision(body(questions=questions, mode="auto"))


def test_a_long_key_is_cut_in_the_message() -> None:
    assert len(refusal(body(questions={"k" * 5_000: 5}))) < 200


@pytest.mark.parametrize("name", ["boolean", "yes_no"])
def test_other_names_of_yes_or_no_are_the_same_question(name: str) -> None:
    (named,) = load_decision(body(questions={"spam": {**NOUL, "type": name}})).questions.values()
    (noul,) = load_decision(body()).questions.values()
    assert named == noul
    assert (named.type, named.definition_json) == ("noul", noul.definition_json)


def test_what_a_missing_coverage_per_counts_as_may_be_said_without_coverage() -> None:
    question = {**CHOICE, "coverage_per": "answer"}
    assert load_decision(body(questions={"q": question})).questions["q"].coverage is None
