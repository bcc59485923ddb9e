"""Models for the engine's tests, beside those of `fakes`: each answers one call with a function."""

from __future__ import annotations

import json
import math
import re
import threading
from dataclasses import replace
from typing import Any

from svc.engine.prompt import REASONING
from svc.providers.bodies import ChatCall
from svc.providers.replies import Completion, Token
from tests.engine.fakes import Answerer

_REVERSED = re.compile(r"no or yes|each of no, yes|^A\. none_of_these", re.M)

CHOICE: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which team?",
    "options": {"billing": "Invoices", "access": "Logins"},
}
NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it urgent?"}
SCORE: dict[str, Any] = {
    "type": "score",
    "instructions": "How bad?",
    "levels": ["low", "mid", "high"],
}
MULTI: dict[str, Any] = {
    "type": "multi",
    "instructions": "Which topics?",
    "options": {"refund": "", "delay": ""},
}
TEXT: dict[str, Any] = {"type": "text", "instructions": "Which city?"}
NUMBER: dict[str, Any] = {"type": "number", "instructions": "What price?"}
INTEGER: dict[str, Any] = {"type": "integer", "instructions": "How many?"}


def asking(*questions: dict[str, Any], state: Any = "s", **fields: Any) -> dict[str, Any]:
    """A request with these questions under the keys k0, k1 and so on."""
    return {"state": state, "questions": {f"k{i}": q for i, q in enumerate(questions)}, **fields}


def user_text(call: ChatCall) -> str:
    """What the user's message says, images aside."""
    content = call.messages[-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def is_reversed(call: ChatCall) -> bool:
    """Whether options are shown in the reversed order."""
    return _REVERSED.search(user_text(call)) is not None


def saying(*members: Any) -> Answerer:
    """A model whose JSON reply has these members, one a question; it has no log-probabilities."""
    reply = json.dumps({f"q{number}": member for number, member in enumerate(members, 1)})
    return lambda _name, _call: Completion(reply, (), input_tokens=10)


def value(content: Any, confidence: float = 0.9) -> dict[str, Any]:
    """An extraction's member of a reply."""
    return {"value": content, "confidence": confidence}


def babbling(_name: str, _call: ChatCall) -> Completion:
    """A model that never keeps the format."""
    text = "I am not sure what you mean."
    return Completion(text, (Token(text, -0.1, ((text, -0.1),)),), input_tokens=10)


def yes(p: float) -> Answerer:
    """A model that answers noul questions alone, with P(yes) = `p` in both modes."""

    def answer(_name: str, call: ChatCall) -> Completion:
        count = len(re.findall(r"^Question(?: \d+)?: ", user_text(call), re.M))
        if not call.logprobs:
            members = {f"q{i + 1}": {"yes": p, "no": 1 - p} for i in range(count)}
            return Completion(json.dumps(members), input_tokens=10)
        listed = tuple((label, math.log(max(q, 1e-9))) for label, q in [("yes", p), ("no", 1 - p)])
        top = max(listed, key=lambda row: row[1])
        line = [Token(*top, listed), Token("\n", 0.0, ())]
        text = f"{top[0]}\n" * count
        return Completion(text, tuple(line * count), input_tokens=10)

    return answer


def named(served_by: str, p: float = 0.8) -> Answerer:
    """The same of a provider that calls its model so."""
    plain = yes(p)
    return lambda name, call: replace(plain(name, call), served_by=served_by)


def in_order(original: Answerer, backwards: Answerer) -> Answerer:
    """One model for each option order."""

    def answer(name: str, call: ChatCall) -> Completion:
        return (backwards if is_reversed(call) else original)(name, call)

    return answer


def in_mode(logprobs: Answerer, verbal: Answerer) -> Answerer:
    """One model for each mode."""

    def answer(name: str, call: ChatCall) -> Completion:
        return (logprobs if call.logprobs else verbal)(name, call)

    return answer


def by_text(words: str, matching: Answerer, other: Answerer) -> Answerer:
    """One model for prompts that hold `words`, another for the rest."""

    def answer(name: str, call: ChatCall) -> Completion:
        return (matching if words in user_text(call) else other)(name, call)

    return answer


class Held:
    """A model that answers when it is let go."""

    def __init__(self, then: Answerer) -> None:
        self.then = then
        self.started, self.let_go = threading.Event(), threading.Event()

    def __call__(self, name: str, call: ChatCall) -> Completion:
        self.started.set()
        assert self.let_go.wait(30)
        return self.then(name, call)


def reasons_first(call: ChatCall) -> bool:
    """Whether the reply's schema begins with room to think."""
    return call.schema is not None and next(iter(call.schema["properties"])) == REASONING
