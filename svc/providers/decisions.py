"""The decisions API: servers that answer `POST /decisions` as OpenAI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.jsontext import JsonObject
from svc.providers.catalog import Provider
from svc.providers.failures import BadReply, Unanswerable, Withheld
from svc.providers.protocol import DecisionCall, Protocol, distribution, share
from svc.providers.replies import Completion, read_details, read_model, read_usage
from svc.providers.traits import Traits
from svc.questions import CHOICE, SCORE, PlainQuestion

# The most levels of a score question that such a server takes.
LEVELS = 10


class DecisionsProtocol(Protocol[DecisionCall]):
    """`POST /decisions`: a list of questions, and answers in the same order."""

    path = "/decisions"

    def body(self, provider: Provider, name: str, call: DecisionCall, traits: Traits) -> JsonObject:
        return {
            "model": name,
            "input": _input(call),
            "questions": [_question(one) for one in call.questions],
        }

    def read(self, payload: Any, call: DecisionCall) -> Completion:
        answers = payload.get("answers") if isinstance(payload, dict) else None
        if not isinstance(answers, list) or len(answers) != len(call.questions):
            raise BadReply("200: not one answer for each question")
        if any(isinstance(one, dict) and one.get("type") == "refusal" for one in answers):
            raise Withheld("200: the server refuses to answer a question")
        try:
            rows = zip(call.questions, answers, strict=True)
            decided = tuple(_decided(question, answer) for question, answer in rows)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BadReply("200: an answer without usable probabilities") from None
        used = read_usage(payload.get("usage"), self.counts)
        names = ("input_tokens_details", "output_tokens_details")
        details = read_details(payload.get("usage"), *names)
        served_by = read_model(payload)
        return Completion("", None, *used, decided=decided, served_by=served_by, details=details)


def _input(call: DecisionCall) -> Any:
    if not call.images:
        return call.state
    images = [{"type": "input_image", "image_url": url} for url in call.images]
    return [{"role": "user", "content": [{"type": "input_text", "text": call.state}, *images]}]


def _question(question: PlainQuestion) -> JsonObject:
    if question.kind == CHOICE:
        choices = [_described("value", *option) for option in question.options]
        return {"type": "choice", "instructions": question.instructions, "choices": choices}
    if question.kind == SCORE:
        if len(question.options) > LEVELS:
            raise Unanswerable(f"a decisions server takes at most {LEVELS} levels")
        levels = [{"label": level} for level, _ in question.options]
        return {"type": "score", "instructions": question.instructions, "levels": levels}
    return {"type": "predicate", "instructions": question.instructions}


def _described(name: str, value: str, description: str) -> dict[str, str]:
    return {name: value, "description": description} if description.strip() else {name: value}


def _decided(question: PlainQuestion, answer: Mapping[str, Any]) -> dict[int, float]:
    """The probability of each label, by its position."""
    if question.kind not in (CHOICE, SCORE):
        yes = share(answer["probability"])
        return {0: yes, 1: 1 - yes}
    stated = answer["probabilities"]
    # Counted before they become keys: of numbers with one hash each costs more than the last.
    if len(stated) != len(question.options):
        raise ValueError("not one probability for each label")
    listed = {(type(one["value"]), one["value"]): one for one in stated}
    if len(listed) != len(stated):
        raise ValueError("a value has two probabilities")
    listed = {value: one["probability"] for (_, value), one in listed.items()}
    names: list[Any] = [name for name, _ in question.options]
    keys = names if question.kind == CHOICE else list(range(len(names)))
    return distribution(question, keys, listed)
