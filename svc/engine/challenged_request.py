"""The request of a live decision as its challenger is asked it."""

from __future__ import annotations

from dataclasses import replace

from svc.engine.plans import CHAIN, Plan
from svc.jsontext import loads
from svc.memo import Memo
from svc.questions import Question
from svc.records import Challenger
from svc.schemas import DecisionRequest, load_questions


def challenged(request: DecisionRequest, challenger: Challenger) -> DecisionRequest:
    """The same request for a challenger: with its model, and its wording of the question.

    The whole of it, so that cost and time are those of the same work. On what answers and rules the
    question depends stays as it is. Raises `ApiError`.
    """
    plan = request.plan if challenger.model is None else Plan(CHAIN, (challenger.model,))
    request = replace(request, plan=plan, explain=False)
    if challenger.wording is None:
        return request
    own = request.questions[challenger.key]
    other = replace(
        worded(challenger.wording), when=own.when, rules=own.rules, depends_on=own.depends_on
    )
    return replace(request, questions={**request.questions, challenger.key: other})


@Memo
def worded(wording: str) -> Question:
    """The question of a wording as it is stored. Raises `ApiError`."""
    return load_questions({"q": loads(wording.encode())})["q"]
