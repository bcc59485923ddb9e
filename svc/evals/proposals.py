"""Other instructions for a question: as a model writes them, and those that can be tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from svc.errors import ApiError
from svc.evals.sets import EvalSet
from svc.records import Decision
from svc.schemas import DecisionRequest, load_decision
from svc.wording import lint

# In which way each of them is to differ: a model that is asked the same twice answers the same.
STYLES = (
    "in as few words as possible",
    "with one more sentence on what counts and what does not",
    "from the view of somebody who has to act on the answer",
    "with one more sentence on how to decide close cases",
    "in the plainest words, as one short question",
    "by what is meant in the input and not by the words in it",
    "beginning with what in the input to look at",
    "in the most precise words",
)
_ASK = (
    "Write the instructions of the question in the input anew, {}. They must mean the same, name "
    "no option, and leave every answer possible. Give the new instructions alone."
)
_LONGEST = 1_000


def request(eval_set: EvalSet, model: Any, count: int) -> DecisionRequest:
    """Asks `model` for `count` other instructions, at most one for each of `STYLES`.

    It is shown the question, and none of the rows. Raises `ApiError`.
    """
    questions = {
        str(number): {
            "type": "text",
            "instructions": _ASK.format(style),
            "max_length": _LONGEST,
        }
        for number, style in enumerate(STYLES[:count])
    }
    state = {"question": dict(eval_set.question)}
    fields: Mapping[str, Any] = {"model": model, "mode": "verbal", "debias": False}
    return load_decision({**fields, "state": state, "questions": questions})


def proposed(decision: Decision) -> list[str]:
    """The instructions that came, valid or not."""
    return [answer.top for answer in decision.answers.values() if isinstance(answer.top, str)]


def different(eval_set: EvalSet, texts: Iterable[str]) -> list[str]:
    """Those that are neither the instructions of the question nor one of those before them."""
    by_meaning = {_folded(text): text.strip() for text in reversed(list(texts))}
    by_meaning.pop(_folded(str(eval_set.question["instructions"])), None)
    return list(by_meaning.values())[::-1]


def sound(eval_set: EvalSet, texts: Iterable[str]) -> list[str]:
    """Those that can be asked and bring no fault of wording with them."""
    allowed = _faults(eval_set)
    return [text for text in texts if _can_be_asked(eval_set, text, allowed)]


def _can_be_asked(eval_set: EvalSet, text: str, allowed: set[str]) -> bool:
    try:
        return _faults(eval_set, instructions=text) <= allowed
    except ApiError:
        return False


def _faults(eval_set: EvalSet, **other: str) -> set[str]:
    """The kinds of fault that lint finds. Raises `ApiError`."""
    return {finding.code for finding in lint(eval_set.request({}, **other).questions)}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
