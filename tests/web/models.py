"""Scripted models that read our prompt and answer it, and the questions the tests put to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.preferring import PreferringModel
from tests.scripted import Behaviour, Handler, Json, Reply, completion

ANIMAL = {
    "type": "choice",
    "instructions": "Which animal is it about?",
    "options": {"cat": "", "dog": ""},
    "escape": False,
}
PREFERS_CATS = PreferringModel({"cat": 3.0})  # P(cat) = 0.75 of cat and dog


def decision(state: Any = "The cat sat on the mat.", **fields: Any) -> Json:
    """The body of a decision on one choice question, `animal`."""
    return {"state": state, "questions": {"animal": ANIMAL}, **fields}


def replying(model: PreferringModel = PREFERS_CATS, delay: float = 0.0) -> Handler:
    """A provider that answers in the mode it is asked in, after `delay` seconds."""

    def handle(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        return Reply(reply_to(model, body), delay=delay)

    return handle


def verbal_only(model: PreferringModel = PREFERS_CATS) -> Handler:
    """A provider that leaves log-probabilities out, wherever they were asked for."""

    def handle(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if body.get("logprobs"):
            return Reply(completion(model.logprobs_reply(body)[0]))
        return Reply(reply_to(model, body))

    return handle


def reply_to(model: PreferringModel, body: Json) -> Json:
    """The chat completion of `model` for a request body."""
    if not body.get("logprobs"):
        return completion(model.verbal_reply(body))
    text, tokens = model.logprobs_reply(body)
    whole = completion(text)
    whole["choices"][0]["logprobs"] = {"content": tokens}
    return whole
