"""Other instructions for a question: as a model writes them, and those that can be tried."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from svc.errors import ApiError, QuotaSpent
from svc.evals.budget import most_calls
from svc.evals.scoring import Ask
from svc.evals.sets import EvalSet
from svc.questions import Text
from svc.schemas import DecisionRequest, load_decision
from svc.terms import Mode
from svc.wording import lint

log = logging.getLogger(__name__)

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


def calls(eval_set: EvalSet, model: Any, count: int) -> int:
    """Model calls that `written` takes at most."""
    return most_calls(_request(eval_set, model, count)) if count else 0


def written(eval_set: EvalSet, model: Any, count: int, ask: Ask) -> list[str]:
    """`count` other instructions by `model`, at most one for each of `STYLES`, valid or not.

    It is shown the question, and none of the rows. None come from a model that does not answer.
    Raises `QuotaSpent`.
    """
    if not count:
        return []
    try:
        decision = ask(_request(eval_set, model, count))
    except QuotaSpent:
        raise
    except ApiError as error:
        log.warning("no wordings were proposed: %s", error.message)
        return []
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


def _request(eval_set: EvalSet, model: Any, count: int) -> DecisionRequest:
    questions = {
        str(number): {
            "type": Text.type,
            "instructions": _ASK.format(style),
            "max_length": _LONGEST,
        }
        for number, style in enumerate(STYLES[:count])
    }
    state = {"question": dict(eval_set.question)}
    fields = {"model": model, "mode": Mode.VERBAL.value, "debias": False}
    return load_decision({**fields, "state": state, "questions": questions})
