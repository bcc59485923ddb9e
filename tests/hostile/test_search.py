"""A search for bodies that cost much: Hypothesis is told what each took, and goes where it is more.

`make fuzz` sets FUZZ_EXAMPLES and looks at many; otherwise it looks at the same few.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from flask import Flask, Response, g
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st

from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load
from tests.contract.test_table import CHOICE, INTEGER, MULTI, NOUL, NUMBER, SCORE, TEXT
from tests.fuzz.inputs import MANY
from tests.hostile.bodies import BODY_BYTES
from tests.hostile.test_bodies import PROCESSOR_S
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, completion
from tests.web.models import PREFERS_CATS, reply_to

# An example takes up to a second, where those of other fuzz tests take a few milliseconds.
SEARCHED = settings(
    max_examples=max(40, int(os.environ.get(MANY, "0")) // 20),
    derandomize=MANY not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
MARK = "the place of what is long"
PATHS = ("decide", "decisions", "lint", "forecast")

# What a response may have: names of a request stand in several of its places.
RESPONSE_BYTES = 8_000_000

# The labels that a call is answered with, where the model does not understand its questions.
SURE = {"A": 0.9, "B": 0.1}

# Texts as they stand in JSON: letters that fold, compose or are escaped in ways of their own.
LETTERS = (
    *("a", "ab", " ", "\u00df", "\u0130", "\ufdfa", "e\u0301", "\u0344", "\U0001f600", "\u202e"),
    *(r"\"", r"\\", r"\u0000", r"\ud83d\ude00", r"\n", "A. ", "Q1: ", "</state>", "{{q}}", "@q"),
)
VALUES = (
    *("[]", "{}", '""', "null", "1", "-0.0", "1e400", "1e-400", '{"a":1}', "[[]]", '"a"', '"\\\\"'),
    *("1" * 300, "0." + "0" * 70 + "1", '{"contains":"ab"}', '{"type":"noul","instructions":"?"}'),
)
# Questions with a label that fits.
KINDS = (
    *((CHOICE, "a"), (SCORE, 1), (NOUL, True), (MULTI, ["a"]), (TEXT, "a"), (NUMBER, 1)),
    (INTEGER, 1),
)
OPERATORS: dict[str, Callable[[str], Any]] = {
    "contains": lambda text: {"contains": text},
    "starts_with": lambda text: {"starts_with": text},
    "gt": lambda text: {"gt": len(text)},
    "exists": lambda _text: {"exists": False},
    "equals": lambda text: text,
    "any of": lambda text: [text, text[:-1]],
}
# Where in a request the long part stands, each a path of names from the outside.
PLACES = (
    *(("state",), ("state", "b"), ("x",), ("model",), ("images",), ("tags",), ("ref",)),
    *(("project",), ("questions",), ("input",), ("sample",), ("labels",)),
    *(("questions", "q0", name) for name in ("instructions", "options", "levels", "examples", "x")),
    *(("questions", "q0", name) for name in ("when", "rules", "depends_on")),
    ("questions", "q0", "when", "a"),
)
# The letters of all questions and of a state, somewhat below what is allowed.
QUESTION_CHARS, STATE_CHARS = 90_000, 149_000


@st.composite
def long_values(draw: st.DrawFn) -> str:
    """The JSON of one value, of a few bytes up to a whole body."""
    size = 2 ** draw(st.integers(0, 24))
    kind = draw(st.sampled_from(["text", "list", "object", "nested", "digits"]))
    if kind == "text":
        letter = draw(st.sampled_from(LETTERS))
        return f'"{letter * (size // len(letter))}{draw(st.sampled_from(["", "b"]))}"'
    if kind == "nested":
        return "[" * min(size, 100_000) + "]" * min(size, 100_000)
    if kind == "digits":
        return draw(st.sampled_from(["1", "0.1", "1e"])) + "1" * size
    value = draw(st.sampled_from(VALUES))
    if kind == "list":
        return f"[{','.join([value] * (size // (len(value) + 1)))}]"
    count = size // (len(value) + 8)
    return "{" + ",".join(f'"u{number}":{value}' for number in range(count)) + "}"


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Some questions of one kind, with rules that look for texts which differ."""
    (kind, label), letter = draw(st.sampled_from(KINDS)), draw(st.sampled_from("aßa😀"))
    operator = OPERATORS[draw(st.sampled_from(sorted(OPERATORS)))]
    count, rules = draw(st.integers(1, 64)), draw(st.just(0) | st.integers(0, 32))
    width = draw(st.integers(2, 255 if kind is CHOICE else 20))
    key = draw(st.sampled_from("q😀")) * draw(st.sampled_from([1, 1, 30_000 // count]))
    room = QUESTION_CHARS // count - 60 - len(key) - (8 * width if kind in (CHOICE, MULTI) else 0)
    length = min(draw(st.integers(0, 2_000)), max(0, room // max(1, rules) - 8))
    asked = {}
    for number in range(count):
        operands = (letter * max(0, length - place) + f"b{number}" for place in range(rules))
        conditions = [{"if": {"a": operator(one)}, "answer": label} for one in operands]
        asked[f"{key}{number}"] = {**kind, **({"rules": conditions} if rules else {})}
        if kind in (CHOICE, MULTI):
            others = {f"o{place}": "" for place in range(width - 1)}
            asked[f"{key}{number}"]["options"] = {"a": letter, **others}
    return asked


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    """A state with a long text, or with long names of fields."""
    letter = draw(st.sampled_from("aßa😀"))
    chars = draw(st.just(STATE_CHARS) | st.integers(0, STATE_CHARS))
    if draw(st.booleans()):
        return {"a": letter * chars}
    fields = draw(st.integers(1, 20))
    return {"a": "", **{f"{letter * (chars // fields)}{number}": 1 for number in range(fields)}}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, bytes]:
    """A path, and a body that is taken there but for a long part, which not each has."""
    path, asked = draw(st.sampled_from(PATHS)), draw(questions())
    state = draw(states())
    body: dict[str, Any] = {"questions": asked}
    if path == "forecast":
        body["sample"] = [state] * draw(st.integers(1, 100))
    elif path == "decisions":
        texts = [f"{number} {json.dumps(one)}" for number, one in enumerate(asked.values())]
        body["input"] = state["a"]
        body["questions"] = [{"type": "predicate", "instructions": text} for text in texts]
    elif path != "lint":
        body["state"] = state
        body |= draw(st.sampled_from([{}, {"explain": True}, {"privacy": "strict"}]))
    if draw(st.sampled_from([True, False, False])):
        *way, last = draw(st.sampled_from(PLACES))
        place: Any = body
        for name in way:
            place = place.setdefault(name, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[last] = MARK
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    if json.dumps(MARK) in text:
        text = text.replace(json.dumps(MARK), draw(long_values()), 1)
    return path, text.encode("utf-8", "replace")[:BODY_BYTES]


def answering(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """Answers each question of a call."""
    try:
        return Reply(reply_to(PREFERS_CATS, body))
    except LookupError:
        return Reply(completion("A", [SURE]))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    with ScriptedProvider(answering) as provider:
        variables = {
            "SVC_DB": str(tmp_path_factory.mktemp("search") / "svc.db"),
            "SVC_MODEL": "@scripted/m",
            "SVC_PROVIDER_SCRIPTED_URL": provider.url,
        }
        services = build(load(variables))
        yield create_app(services)
        services.close()


@pytest.fixture(scope="module")
def elsewhere(app: Flask) -> list[float]:
    """The seconds of a processor that other threads took for the last request."""
    took = [0.0]

    def note(response: Response) -> Response:
        took[0] = g.deadline.effort.worked_s
        return response

    app.after_request(note)
    return took


@SEARCHED
@given(asked=requests())
def test_no_body_is_found_that_costs_much(
    app: Flask, elsewhere: list[float], asked: tuple[str, bytes]
) -> None:
    (path, body), client = asked, app.test_client()
    began = time.thread_time()
    response = client.post(f"/v1/{path}", data=body)
    took_s = time.thread_time() - began + elsewhere[0]
    target(took_s, label=path)
    target(float(len(response.data)), label=f"{path}, the response")
    assert took_s < PROCESSOR_S, (path, len(body), body[:300], response.status_code)
    assert len(response.data) < RESPONSE_BYTES, (path, body[:300])
    assert response.status_code in (200, 400, 404, 422, 502), response.text
