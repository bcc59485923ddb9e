"""Whatever a provider replies: a completion that can be trusted, or a failed call."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from svc import limits
from svc.engine.prompt import member
from svc.engine.reply import read_json, read_lines
from svc.providers.bodies import ChatCall
from svc.providers.failures import CallError
from svc.providers.redaction import Redactor
from svc.providers.refusals import LONGEST_WAIT_S, Asked, retry_after
from svc.providers.replies import Completion, Reply, read_completion, read_models
from svc.questions import Question, Reading, Unreadable
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
LOGPROBS = completion("".join(next(iter(line)) for line in LINES), LINES)
VERBAL = {
    member(0): {"A": 0.7, "B": 0.2, "C": 0.1},
    member(1): {"A": 0.1, "B": 0.9, "C": 0.0},
    member(2): {"yes": 0.7, "no": 0.3},
    member(3): {"A": 0.9, "B": 0.1},
    member(4): {"value": "x", "confidence": 0.5},
    member(5): {"value": 3, "confidence": 0.5},
}


def asked(logprobs: bool) -> Asked:
    return Asked({"model": "m", "logprobs": logprobs}, Redactor(CALL, "key"))


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
    with contextlib.suppress(CallError):
        found = read_completion(reply(status, headers, body), asked(logprobs), NOW)
    with contextlib.suppress(CallError):
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
    with contextlib.suppress(CallError, Unreadable):
        found = read_completion(reply(200, {}, json.dumps(body).encode()), asked(True), NOW)
        readings = read_lines(found.tokens or (), LABELLED, backwards, limits.TOP_LOGPROBS)
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
@given(headers=HEADERS, reset=SCALARS)
def test_a_wait_is_within_bounds_or_none(headers: dict[str, str], reset: Any) -> None:
    found = retry_after(CaseInsensitiveDict(headers), reset, NOW)
    assert found is None or 0 <= found <= LONGEST_WAIT_S


def test_the_replies_that_are_damaged_are_good() -> None:
    found = read_completion(reply(200, {}, json.dumps(LOGPROBS).encode()), asked(True), NOW)
    assert found.tokens is not None
    assert len(read_lines(found.tokens, LABELLED, False, 2)) == len(LABELLED)
    assert len(read_json(json.dumps(VERBAL), ALL, False)) == len(ALL)
