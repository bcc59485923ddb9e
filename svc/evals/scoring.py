"""Asks about one row of an eval set, and compares the answer with the true one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from svc.batch import compare
from svc.errors import ApiError, QuotaSpent
from svc.evals.sets import EvalRow
from svc.records import Decision
from svc.schemas import DecisionRequest, with_state
from svc.terms import TaskKind

Ask = Callable[[DecisionRequest], Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The outcome of a row: an answer beside the true one, a skipped question, or a failure.

    `mode` is the one that answered, and `error` the message of a failure. `comparable` says that
    the different answers are few enough to be counted in pairs of label and answer.
    """

    label: str = ""
    answer: str = ""
    agrees: bool = False
    confidence: float = 0.0
    brier: float = 0.0
    skipped: bool = False
    mode: str = ""
    latency_ms: float = 0.0
    cost_usd: float = 0.0
    error: str = ""
    comparable: bool = True

    @property
    def answered(self) -> bool:
        return not self.error and not self.skipped


def score(ask: Ask, request: DecisionRequest, row: EvalRow) -> Scored:
    """Ask about one row; a failure is a result too. Raises `QuotaSpent`."""
    ((key, question),) = request.questions.items()
    try:
        decision = ask(with_state(request, row.state))
    except QuotaSpent:
        raise
    except ApiError as error:
        return Scored(error=f"{error.type}: {error.message}")
    compared = compare(request.questions, {key: row.truth}, decision)[key]
    return Scored(
        **asdict(compared),
        mode=decision.mode,
        latency_ms=decision.latency_ms,
        cost_usd=decision.cost_usd,
        comparable=question.task is not TaskKind.RIGHTNESS,
    )
