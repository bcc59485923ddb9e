"""Turns JSON into frozen requests, and checks it before any model is asked.

A body that is no object, an unknown `mode` and an unknown question `type` are `InvalidJson` (400).
Anything else that is wrong is `InvalidRequest` (422), whose message names question and field.
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
