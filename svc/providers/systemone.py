"""The criteria shape: servers that answer `POST /systemone`, this project's own among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.jsontext import JsonObject
from svc.providers.catalog import Provider
from svc.providers.failures import BadReply, Unanswerable
from svc.providers.protocol import DecisionCall, Protocol, distribution, share
from svc.providers.replies import Completion, read_model, read_usage
from svc.providers.traits import Traits
from svc.questions import CHOICE, SCORE, PlainQuestion

# Any other kind is a yes/no question, of the type `noul`.
_TYPES = {CHOICE: "choice", SCORE: "score"}


class SystemOne(Protocol[DecisionCall]):
    """`POST /systemone`: a map of questions with criteria; answers by the same names."""

    path = "/systemone"

    def body(self, provider: Provider, name: str, call: DecisionCall, traits: Traits) -> JsonObject:
        if call.images:
            raise Unanswerable("a server of the criteria shape takes no images")
        questions = {
            _name(number): _question(question) for number, question in enumerate(call.questions)
        }
        return {"model": name, "state": call.state, "questions": questions}

    def read(self, payload: Any, call: DecisionCall) -> Completion:
        answers = payload.get("answers") if isinstance(payload, dict) else None
        if not isinstance(answers, dict):
            raise BadReply("200: no answers in the reply")
        try:
            decided = tuple(
                _decided(question, answers.get(_name(number)))
                for number, question in enumerate(call.questions)
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BadReply("200: an answer without usable probabilities") from None
        used = read_usage(payload.get("usage"), self.counts)
        return Completion("", None, *used, decided=decided, served_by=read_model(payload))


def _name(number: int) -> str:
    """A neutral name, because a model must not see the caller's keys."""
    return f"q{number + 1}"


def _question(question: PlainQuestion) -> JsonObject:
    body: JsonObject = {
        "type": _TYPES.get(question.kind, "noul"),
        "instructions": question.instructions,
    }
    if question.kind == CHOICE:
        body["criteria"] = dict(question.options)
    elif question.kind == SCORE:
        body["criteria"] = [level for level, _ in question.options]
    return body


def _decided(question: PlainQuestion, answer: Mapping[str, Any] | None) -> dict[int, float]:
    """The probability of each label, by its position."""
    if answer is None:
        raise ValueError("no answer to a question")
    if question.kind not in (CHOICE, SCORE):
        yes = share(answer["noul"])
        return {0: yes, 1: 1 - yes}
    listed = answer["probabilities"]
    if isinstance(listed, list):
        listed = {str(level): probability for level, probability in enumerate(listed)}
    names = [name for name, _ in question.options]
    keys = names if question.kind == CHOICE else [str(level) for level in range(len(names))]
    return distribution(question, keys, listed)
