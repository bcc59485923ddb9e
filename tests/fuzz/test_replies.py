"""Whatever a provider replies: a completion that can be trusted, or a failed call."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from svc.engine.label_reading import answer_tokens, read_lines, read_single
from svc.engine.prompt import member
from svc.engine.reply import assembled, read_json, wanted_labels
from svc.providers.bodies import ChatCall
from svc.providers.error_text import LONGEST_WAIT_S, retry_after
from svc.providers.failures import ParameterBounded, ProviderError
from svc.providers.protocol import DecisionCall
from svc.providers.protocols import PROTOCOLS
from svc.providers.redaction import Allowance, Redactor
from svc.providers.refusals import SentCall
from svc.providers.replies import (
    Completion,
    Reply,
    Token,
    check_payload,
    decoded,
    read_chat,
    read_models,
)
from svc.questions import LabelLine, Question, Reading, Unreadable
from tests.engine.models import CHOICE, MULTI, NOUL, NUMBER, SCORE, TEXT
from tests.fuzz.inputs import FUZZED, JSON, SCALARS, as_json, damaged, damaged_bytes
from tests.questions.contract import load
from tests.scripted import completion, error

CALL = ChatCall(({"role": "user", "content": "the secret plan"},), 50)
LABELLED = [load(body) for body in (CHOICE, SCORE, NOUL, MULTI)]
ALL = [*LABELLED, load({**TEXT, "nullable": True}), load(NUMBER)]
NOW = 1_790_000_000.0  # seconds since the epoch
NUMBERS = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.sampled_from([-9999.0, 0, -0.0, 1e-300]),
)
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "X-RateLimit-Reset"]),
    st.one_of(
        st.text(max_size=30),
        st.floats().map(str),
        st.integers().map(str),
        st.datetimes().map(lambda d: f"{d:%a, %d %b %Y %H:%M:%S GMT}"),
    ),
)


def good_lines() -> list[dict[str, float]]:
    """The label of each line, with what could have stood in its place."""
    lines = []
    for question in LABELLED:
        for _, labels in question.reply_lines(False):
            lines += [{label: 0.9 / len(labels) for label in labels}, {"\n": 1.0}]
    return lines


LINES = good_lines()
LABELS = wanted_labels(LABELLED, False)
DECISION = DecisionCall(tuple(one for question in LABELLED for one in question.plain(False)), "s")
LOGPROBS = completion("".join(next(iter(line)) for line in LINES), LINES)
VERBAL = {
    member(0): {"A": 0.7, "B": 0.2, "C": 0.1},
    member(1): {"A": 0.1, "B": 0.9, "C": 0.0},
    member(2): {"yes": 0.7, "no": 0.3},
    member(3): {"A": 0.9, "B": 0.1},
    member(4): {"value": "x", "confidence": 0.5},
    member(5): {"value": 3, "confidence": 0.5},
}
LEVELS = (0.2, 0.3, 0.5)

DECIDED = {
    "systemone": {
        "answers": {
            "q1": {"probabilities": {"billing": 0.7, "access": 0.3, "none_of_these": 0.0}},
            "q2": {"probabilities": {"0": 0.2, "1": 0.8, "2": 0.0}},
            "q3": {"noul": 0.7},
            "q4": {"noul": 0.9},
            "q5": {"noul": 0.1},
        }
    },
    "decisions": {
        "answers": [
            {
                "probabilities": [
                    {"value": "billing", "probability": 0.7},
                    {"value": "access", "probability": 0.2},
                    {"value": "none_of_these", "probability": 0.1},
                ]
            },
            {"probabilities": [{"value": n, "probability": p} for n, p in enumerate(LEVELS)]},
            {"probability": 0.7},
            {"probability": 0.9},
            {"probability": 0.1},
        ]
    },
}
BODY = {
    "model": "m",
    "messages": [],
    "temperature": 0,
    "max_tokens": 50,
    "response_format": {"type": "json_object", "schema": {}},
    "reasoning": {"effort": "none"},
}
SAID = (
    "logprobs top_logprobs temperature max_tokens response_format schema reasoning model json "
    "context length too large at most invalid not supported 5 0 99999999 4096 -1 1.5 credit "
    "balance insufficient quota"
)
WORDS = st.lists(st.sampled_from(SAID.split()), max_size=8).map(" ".join)


def asked(logprobs: bool) -> SentCall:
    fields = {"logprobs": True, "top_logprobs": 20} if logprobs else {}
    return SentCall({**BODY, **fields}, Redactor(CALL, "key", Allowance()))


def completed(found: Reply, logprobs: bool) -> Completion:
    """The completion in a reply; raises a `ProviderError` for any other."""
    payload = decoded(found.body)
    check_payload(payload, found, asked(logprobs), NOW)
    return read_chat(payload, logprobs, 100)


def reply(status: int, headers: dict[str, str], body: bytes) -> Reply:
    return Reply(status, CaseInsensitiveDict(headers), body)


def assert_trusted(question: Question, reading: Reading) -> None:
    assert all(math.isfinite(p) and 0 <= p <= 1 for p in reading.probabilities)
    if question.type in ("choice", "score"):
        assert math.fsum(reading.probabilities) == pytest.approx(1, abs=1e-6)
    json.dumps(question.answer(reading), allow_nan=False)


@FUZZED
@given(
    body=st.one_of(st.binary(max_size=80), damaged_bytes(LOGPROBS), damaged_bytes(error("no"))),
    status=st.sampled_from([200, 200, 200, 201, 400, 401, 404, 422, 429, 500, 503]),
    headers=HEADERS,
    logprobs=st.booleans(),
)
def test_a_reply_is_a_completion_or_a_failed_call(
    body: bytes, status: int, headers: dict[str, str], logprobs: bool
) -> None:
    found: Completion | None = None
    with contextlib.suppress(ProviderError):
        found = completed(reply(status, headers, body), logprobs)
    with contextlib.suppress(ProviderError):
        assert all(
            isinstance(name, str)
            for name in read_models(reply(status, headers, body), asked(False), NOW)
        )
    if found is not None:
        assert found.text.strip()
        assert found.reported_cost is None or math.isfinite(found.reported_cost)
        with contextlib.suppress(Unreadable):
            for question, reading in zip(ALL, read_json(found.text, ALL, False), strict=True):
                assert_trusted(question, reading)


@FUZZED
@given(data=st.data(), backwards=st.booleans())
def test_log_probabilities_read_as_probabilities_or_not_at_all(
    data: st.DataObject, backwards: bool
) -> None:
    body = json.loads(json.dumps(LOGPROBS))
    tokens = body["choices"][0]["logprobs"]["content"]
    for _ in range(data.draw(st.integers(1, 4))):
        entry = data.draw(st.sampled_from(tokens))
        entry = data.draw(st.sampled_from([entry, *entry["top_logprobs"]]))
        entry["logprob"] = data.draw(NUMBERS)
    with contextlib.suppress(ProviderError, Unreadable):
        found = completed(reply(200, {}, json.dumps(body).encode()), True)
        lines = read_lines(answer_tokens(found), wanted_labels(LABELLED, backwards))
        readings = assembled(lines, LABELLED, backwards)
        for question, reading in zip(LABELLED, readings, strict=True):
            assert_trusted(question, reading)


@FUZZED
@given(
    value=damaged(VERBAL),
    before=st.sampled_from(["", "Sure: ", "```json\n", "{", "{}"]),
    backwards=st.booleans(),
)
def test_a_verbal_reply_reads_as_probabilities_or_not_at_all(
    value: Any, before: str, backwards: bool
) -> None:
    with contextlib.suppress(Unreadable):
        readings = read_json(before + as_json(value).decode(), ALL, backwards)
        for question, reading in zip(ALL, readings, strict=True):
            assert_trusted(question, reading)


@FUZZED
@given(index=st.integers(0, len(ALL) - 1), value=st.one_of(JSON, NUMBERS))
def test_any_member_of_a_verbal_reply_is_read_or_not(index: int, value: Any) -> None:
    with contextlib.suppress(Unreadable):
        assert_trusted(ALL[index], ALL[index].read_member(value, False))


@FUZZED
@given(kind=st.sampled_from(sorted(DECIDED)), data=st.data())
def test_a_decision_reads_as_probabilities_or_not_at_all(kind: str, data: st.DataObject) -> None:
    value = data.draw(damaged(DECIDED[kind]) | JSON)
    with contextlib.suppress(ProviderError, Unreadable):
        found = PROTOCOLS[kind].read(value, DECISION)
        readings = assembled([LabelLine(one) for one in found.decided], LABELLED, False)
        for question, reading in zip(LABELLED, readings, strict=True):
            assert_trusted(question, reading)


@FUZZED
@given(
    text=st.lists(
        st.sampled_from(["A", "yes", "no", "B", " ", "\n", ".", ", ", "Answer: ", "1. ", "<think>"])
        | st.text(max_size=4),
        max_size=8,
    ),
    share=st.floats(0, 1),
)
def test_any_text_is_read_as_a_label_or_not_at_all(text: list[str], share: float) -> None:
    listed = [{piece or "x": max(share, 1e-9), "A": 0.1, "no": 0.1} for piece in text]
    body = json.dumps(completion("".join(text), listed)).encode()
    for question in LABELLED[:3]:
        ((_, labels),) = question.reply_lines(False)
        with contextlib.suppress(ProviderError, Unreadable):
            line = read_single(answer_tokens(completed(reply(200, {}, body), True)), labels)
            assert_trusted(question, question.read_lines([line], False))


@FUZZED
@given(
    thought=st.lists(
        st.sampled_from(["A", "yes", "no", "\n", "<think>", "</think>", " so ", "1. ", ""])
        | st.text(max_size=4),
        max_size=8,
    )
)
def test_tokens_of_thought_before_the_text_change_nothing(thought: list[str]) -> None:
    plain = completed(reply(200, {}, json.dumps(LOGPROBS).encode()), True)
    before = [Token(text, -0.1, ((text, -0.1), ("no", -3.0))) for text in thought]
    assert plain.tokens is not None
    found = replace(plain, tokens=(*before, *plain.tokens))
    assert read_lines(answer_tokens(found), LABELS) == read_lines(plain.tokens, LABELS)


@FUZZED
@given(
    text=st.text(max_size=12) | st.text(alphabet="A yesno\n.<|>", max_size=12),
    texts=st.lists(st.text(alphabet="A yesno\n.<|>", max_size=4), max_size=6),
)
def test_the_tokens_of_a_text_are_the_last_ones_or_none(text: str, texts: list[str]) -> None:
    tokens = tuple(Token(one, -0.1, ()) for one in texts)
    with contextlib.suppress(Unreadable):
        found = answer_tokens(Completion(text, tokens))
        assert tuple(found) == tokens[len(tokens) - len(found) :]


@FUZZED
@given(
    message=WORDS,
    param=st.sampled_from(["", "logprobs", "max_tokens", "body.temperature", "model"]) | WORDS,
    status=st.integers(200, 599),
    logprobs=st.booleans(),
)
def test_whatever_an_error_says_it_is_one_that_can_be_told(
    message: str, param: str, status: int, logprobs: bool
) -> None:
    body = json.dumps(error(message, param=param)).encode()
    with pytest.raises(ProviderError) as raised:
        completed(reply(status, {}, body), logprobs)
    assert raised.value.as_api_error().message
    if isinstance(raised.value, ParameterBounded):
        assert raised.value.bound >= 1
        sent = asked(logprobs).body[raised.value.parameter]
        assert (raised.value.bound < sent) is raised.value.upper


@FUZZED
@given(headers=HEADERS, reset=SCALARS)
def test_a_wait_is_within_bounds_or_none(headers: dict[str, str], reset: Any) -> None:
    found = retry_after(CaseInsensitiveDict(headers), reset, NOW)
    assert found is None or 0 <= found <= LONGEST_WAIT_S


def test_the_replies_that_are_damaged_are_good() -> None:
    found = completed(reply(200, {}, json.dumps(LOGPROBS).encode()), True)
    assert answer_tokens(found) == found.tokens
    lines = read_lines(answer_tokens(found), LABELS)
    assert len(assembled(lines, LABELLED, False)) == len(LABELLED)
    for kind, good in DECIDED.items():
        decided = PROTOCOLS[kind].read(good, DECISION).decided
        assert len(assembled([LabelLine(one) for one in decided], LABELLED, False)) == len(LABELLED)
    assert len(read_json(json.dumps(VERBAL), ALL, False)) == len(ALL)
