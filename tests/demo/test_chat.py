"""The OpenAI-compatible side of the demonstration model."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.demo.chat import ChatError, complete
from tests.demo.prompts import ESCAPE, TEAM, ask, body, prompt, question, reply_lines

TICKET = "I was charged twice and I want a refund of the second payment."
BOTH = prompt(
    TICKET,
    question(1, TEAM[0], *TEAM[1], ESCAPE),
    question(2, "Does the customer ask for a refund?"),
    reply_lines("question 1, one of A, B, C", "question 2, yes or no"),
)


def refusal(request: Any) -> ChatError:
    with pytest.raises(ChatError) as raised:
        complete(request if isinstance(request, bytes) else json.dumps(request).encode())
    return raised.value


def test_a_completion_has_the_usual_shape() -> None:
    reply = complete(json.dumps(body(BOTH)).encode())
    (choice,) = reply["choices"]
    assert reply["object"] == "chat.completion" and reply["model"] == "lexical"
    assert choice["message"] == {"role": "assistant", "content": "A\nyes"}
    assert choice["finish_reason"] == "stop" and choice["logprobs"] is None


def test_usage_counts_about_four_characters_a_token() -> None:
    usage = complete(json.dumps(body(BOTH)).encode())["usage"]
    assert usage["prompt_tokens"] == math.ceil(len(BOTH) / 4)
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3


def test_equal_requests_get_equal_replies() -> None:
    request = json.dumps(body(BOTH, logprobs=True, top_logprobs=5)).encode()
    assert complete(request) == complete(request)


def test_logprobs_hold_one_token_a_label_and_one_a_newline() -> None:
    content = ask(BOTH, logprobs=True, top_logprobs=20)["logprobs"]["content"]
    assert [token["token"] for token in content] == ["A", "\n", "yes"]
    for token in content:
        logprobs = [entry["logprob"] for entry in token["top_logprobs"]]
        assert logprobs == sorted(logprobs, reverse=True)
        assert sum(map(math.exp, logprobs)) <= 1
        assert token["top_logprobs"][0]["token"] == token["token"]
        assert bytes(token["bytes"]).decode() == token["token"]


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (1, 1), (2, 2), (20, 3)])
def test_no_more_alternatives_are_given_than_asked_for(asked: int, given: int) -> None:
    content = ask(BOTH, logprobs=True, top_logprobs=asked)["logprobs"]["content"]
    assert len(content[0]["top_logprobs"]) == given


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_reply_over_the_limit_is_cut_and_says_so(name: str) -> None:
    choice = ask(BOTH, logprobs=True, **{name: 2})
    assert choice["message"]["content"] == "A\n" and choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["content"]) == 2
    assert ask(BOTH, **{name: 3})["finish_reason"] == "stop"


def test_the_text_of_a_message_in_parts_is_read_and_its_images_are_not() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    content = [{"type": "text", "text": BOTH}, image]
    request = {"model": "lexical", "messages": [{"role": "user", "content": content}]}
    choice = complete(json.dumps(request).encode())["choices"][0]
    assert choice["message"]["content"] == "A\nyes"


def test_only_the_last_message_of_the_user_is_answered() -> None:
    request = body(BOTH)
    request["messages"].insert(0, {"role": "user", "content": "hello"})
    request["messages"].insert(0, {"role": "system", "content": "You answer."})
    request["messages"].append({"role": "assistant", "content": "Well:"})
    choice = complete(json.dumps(request).encode())["choices"][0]
    assert choice["message"]["content"] == "A\nyes"


def test_a_prompt_of_another_kind_gets_an_honest_sentence() -> None:
    assert "lexical matcher" in ask("Write me a poem.")["message"]["content"]


def test_another_model_is_not_found() -> None:
    error = refusal({**body("x"), "model": "gpt-4o"})
    assert error.status == 404 and error.body()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [None]}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": True}, "top_logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": "9"}, "max_completion_tokens"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": ["json_object"]}}, "response_format"),
        ({"stream": True}, "stream"),
    ],
)
def test_a_field_that_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    error = refusal({**body("x"), **fields})
    assert error.status == 400 and error.body()["error"]["param"] == param


@pytest.mark.parametrize(
    "request_bytes",
    [b"", b"{", b"[]", b"null", b"\xff\xfe\xfa", b"[" * 200_000, b'{"a":' * 200_000, b"9" * 9_999],
)
def test_a_body_that_is_no_json_object_is_refused(request_bytes: bytes) -> None:
    assert refusal(request_bytes).status == 400


def test_a_schema_that_is_nested_too_deeply_is_refused_or_filled() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    form = {"type": "json_schema", "json_schema": {"name": "deep", "schema": schema}}
    try:
        content = ask("x", response_format=form)["message"]["content"]
    except ChatError as error:
        assert error.status == 400
    else:
        assert content.count("{") == 400


PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["Questions:\n\n", "\n\nQuestion 1: ", "\nA. x", "\nB. ", "\nReply with ", "\nLine 1: "]
        + ["question 1, ", "option ZZZZ, ", "one of A, B", "yes or no", "Input:\n", "not urgent"]
        + ["<input-00000000>\n", "\n</input-00000000>", '\n"q1": ', 'an object {"value": ', "null"]
        + ["for each of A, A", "a list of the 0 most", "a number from 1e999 up to -", "5", "9e9"]
        + ["Earlier answers:\n- a: b", "\nExample input: a\nExample answer: A", '{"a":[null,1]}']
    ),
)
SCHEMAS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["string", "null", "a"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "enum", "anyOf", "oneOf", "const", "q1"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.lists(PIECES, max_size=12).map("".join), st.one_of(st.none(), SCHEMAS))
def test_any_prompt_and_schema_get_a_completion_or_a_refusal(text: str, schema: Any) -> None:
    fields: dict[str, Any] = {"logprobs": True, "top_logprobs": 20}
    if schema is not None:
        fields["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    try:
        choice = ask(text, **fields)
    except ChatError as error:
        assert error.status == 400
        return
    if schema:
        json.loads(choice["message"]["content"], parse_constant=pytest.fail)
    for token in choice["logprobs"]["content"]:
        assert sum(math.exp(entry["logprob"]) for entry in token["top_logprobs"]) <= 1 + 1e-9
