"""An engine whose decisions and commits are spans of traces; docs/traces.md names all they tell."""

from __future__ import annotations

from functools import partial

from svc.deadline import Deadline
from svc.engine.decide import Engine, Keep, Present, as_it_is
from svc.records import Decision
from svc.schemas import DecisionRequest
from svc.tracing import Attributes, Kind, Span

_COMMIT: Attributes = {"db.system.name": "sqlite", "db.operation.name": "COMMIT"}


class TracedEngine(Engine):
    """Tells of decisions in the traces of their deadlines."""

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        present: Present = as_it_is,
        keep: Keep | None = None,
        job: int | None = None,
    ) -> Decision:
        """See `Engine.decide`."""
        trace = deadline.trace
        if trace is None:
            return super().decide(request, deadline, api_key, present, keep, job)
        kind = Kind.SERVER if job is None else Kind.INTERNAL
        with trace.part("decide", kind, {"svc.questions": len(request.questions)}) as span:
            deadline.trace = span
            try:
                told = partial(_committed, span, keep or self._journal.add)
                decision = super().decide(request, deadline, api_key, present, told, job)
            finally:
                deadline.trace = trace
            span.tell(_facts(decision))
        return decision


def _committed(span: Span, keep: Keep, decision: Decision) -> str:
    """Store a decision; the span ends when it is durable."""
    with span.part("commit", Kind.CLIENT, _COMMIT):
        return keep(decision)


def _facts(decision: Decision) -> Attributes:
    return {
        "svc.decision.id": decision.id,
        "svc.project": decision.project,
        "svc.model": decision.model,
        "svc.mode": decision.mode,
        "svc.config": decision.config,
        "svc.cached": decision.cached,
        "svc.debiased": decision.debiased,
        "svc.cost_usd": decision.cost_usd,
    }
