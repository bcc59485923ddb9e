"""How many model calls a command that asks many requests may take."""

from __future__ import annotations

from svc import limits
from svc.engine import planned_calls
from svc.errors import SettingsError
from svc.schemas import DecisionRequest
from svc.terms import Mode

# More model calls than these have to be agreed to.
FREE_CALLS = 200
# Calls of one asking, debiased.
_ORDERS = 2


def most_calls(request: DecisionRequest) -> int:
    """Model calls that a request takes at most; retries of the same call are not counted."""
    members = len(request.plan.models) if request.plan else 1
    orders = 1 if request.debias is False else _ORDERS
    calls = planned_calls.of_stages(request, members, orders)
    if request.mode is Mode.VERBAL:
        return min(limits.MODEL_CALLS, calls)
    by_labels = [
        question
        for question in request.questions.values()
        if not question.think and not question.verbal_reason
    ]
    if by_labels and request.mode is not Mode.LOGPROBS:
        calls *= 2
    lines = sum(len(question.reply_lines(False)) for question in by_labels)
    if lines > 1:
        # Some models have to be asked for one label a call.
        calls += members * orders * lines
    return min(limits.MODEL_CALLS, calls)


def calls_text(calls: int) -> str:
    """What `most_calls` counts, in words."""
    return f"{calls:,} model calls, besides repeats of those that fail"


def check_agreed(calls: int, yes: bool, fewer: str) -> None:
    """Raise `SettingsError` for calls that --yes has to agree to; `fewer` says how to take less."""
    if calls > FREE_CALLS and not yes:
        raise SettingsError(
            f"{calls:,} model calls are more than {FREE_CALLS}; --yes makes them, {fewer}"
        )
