"""Replies as providers and servers really sent them, played back over real sockets.

Each file in `replies/` describes one provider's behaviour as rules; its README.md has the format.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.preferring import PreferringModel, user_text
from tests.scripted import Behaviour, Reply, completion

FOLDER = Path(__file__).parent / "replies"
MODES = ("auto", "logprobs", "verbal")
CHOICE = {
    "type": "choice",
    "instructions": "Which team should handle this message?",
    "options": {
        "billing": "Payments, invoices and refunds",
        "technical": "Errors, crashes and outages",
        "account": "Sign-in, password and profile",
    },
    "escape": False,
}
NOUL = {"type": "noul", "instructions": "Does the customer ask for money back?"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "choice": {"q": CHOICE},
    "noul": {"q": NOUL},
    "pair": {"q": CHOICE, "r": NOUL},
    "many": {
        "q": {
            "type": "choice",
            "instructions": "Which intent is it?",
            "options": {f"o{n}": f"intent number {n}" for n in range(1, 31)},
            "escape": False,
        }
    },
    "text": {"q": {"type": "text", "instructions": "Which city is named?"}},
    "number": {"q": {"type": "number", "instructions": "Which amount is named?"}},
}
STATE = "I was charged 42 euros twice in Oslo. Please send the second payment back."


@dataclass(frozen=True)
class Recorded:
    """One file: what a provider does, and what must come of it in each mode."""

    name: str
    facts: Mapping[str, Any]

    @property
    def questions(self) -> dict[str, Any]:
        return QUESTIONS[self.facts.get("questions", "choice")]

    @property
    def ends(self) -> Mapping[str, str]:
        ends: Mapping[str, str] = self.facts["ends"]
        return ends

    def answer(self, mode: str) -> Any:
        """The top answer that the replies determine in a mode, else None."""
        return self.facts.get("answer", {}).get(mode)

    def behave(self, body: dict[str, Any], _n: int, _headers: Mapping[str, str]) -> Behaviour:
        """The reply of the first rule that holds for a request."""
        for rule in self.facts["rules"]:
            if _holds(rule.get("when", {}), body):
                return _reply(rule, body)
        raise AssertionError(f"{self.name}: no rule for {sorted(body)}")


def recorded() -> list[Recorded]:
    """Every file of the folder, by name."""
    paths = sorted(FOLDER.glob("*.json"))
    return [Recorded(path.stem, json.loads(path.read_text("utf-8"))) for path in paths]


def _holds(when: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a request is one that a rule speaks of."""
    checks = {
        "sends": lambda names: all(_at(body, name) is not None for name in _listed(names)),
        "lacks": lambda names: all(_at(body, name) is None for name in _listed(names)),
        "is": lambda pairs: all(_at(body, name) == value for name, value in pairs.items()),
        "above": lambda pairs: all((_at(body, n) or 0) > value for n, value in pairs.items()),
        "below": lambda pairs: all((_at(body, n) or 0) < value for n, value in pairs.items()),
        "lines": lambda wanted: ("lines and nothing else" in user_text(body)) == wanted,
    }
    return all(checks[name](argument) for name, argument in when.items())


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _at(body: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; `limit` is the output limit under either name."""
    if path == "limit":
        return body.get("max_tokens", body.get("max_completion_tokens"))
    value: Any = body
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _reply(rule: Mapping[str, Any], body: dict[str, Any]) -> Reply:
    """What a rule answers."""
    headers = rule.get("headers", {})
    status = rule.get("status", 200)
    if "body" in rule:
        content = rule["body"]
        if isinstance(content, dict) and content.keys() == {"base64"}:
            content = base64.b64decode(content["base64"])
        return Reply(content, status, headers)
    return Reply(_completion(rule["reply"], body), status, headers)


def _completion(reply: Any, body: dict[str, Any]) -> dict[str, Any]:
    """A chat completion out of a shorthand."""
    model = PreferringModel({"billing": 9.0, "o3": 9.0}, yes=0.9)
    if reply == "labels":
        text, content = model.logprobs_reply(body)
        made = completion(text)
        made["choices"][0]["logprobs"] = {"content": content}
        return made
    if reply == "verbal":
        return completion(_verbal(model, body))
    text = reply.get("text")
    if text is None and reply.get("tokens"):
        text = "".join(token for token, _ in reply["tokens"])
    made = completion(text, finish_reason=reply.get("finish_reason", "stop"))
    choice = made["choices"][0]
    if "reasoning_content" in reply:
        choice["message"]["reasoning_content"] = reply["reasoning_content"]
    if "tokens" in reply:
        choice["logprobs"] = {"content": [_position(*token) for token in reply["tokens"]]}
    made["usage"].update(reply.get("usage", {}))
    return made


def _verbal(model: PreferringModel, body: dict[str, Any]) -> str:
    """A well-formed JSON reply, values of extraction questions included."""
    text = user_text(body)
    if '{"value": text' in text:
        return json.dumps({"q1": {"value": "Oslo", "confidence": 0.9}})
    if re.search(r'\{"value": a (whole )?number', text):
        return json.dumps({"q1": {"value": 42, "confidence": 0.9}})
    return model.verbal_reply(body)


def _position(token: str, alternatives: Mapping[str, float]) -> dict[str, Any]:
    """One entry of `logprobs.content`; probabilities of 0 and less stand for themselves."""
    listed = [{"token": name, "logprob": _logprob(p)} for name, p in alternatives.items()]
    own = alternatives.get(token)
    logprob = _logprob(own) if own is not None else -0.5
    return {"token": token, "logprob": logprob, "top_logprobs": listed}


def _logprob(probability: float) -> float:
    return math.log(probability) if probability > 0 else probability
