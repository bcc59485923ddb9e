"""JSON into frozen requests: what is checked before anything is asked.

A body that is no object, an unknown `mode` and an unknown question `type` are `InvalidJson` (400);
all else that is wrong is `InvalidRequest` (422), whose message names the question and the field.
"""

from __future__ import annotations

from svc.schemas.decision import (
    DecisionRequest,
    State,
    load_decision,
    load_questions,
    with_state,
)

__all__ = ["DecisionRequest", "State", "load_decision", "load_questions", "with_state"]
