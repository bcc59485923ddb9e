"""The rows that are looked at to say what many will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from svc import limits
from svc.errors import InvalidRequest
from svc.schemas import DecisionRequest, with_state


def rows_of(
    request: DecisionRequest, sample: Sequence[Any]
) -> tuple[list[DecisionRequest], list[str]]:
    """The rows of a sample that can be asked, and why the others cannot.

    Rules may look for thousands of texts in each state. So no more rows are looked at once these
    have `SAMPLE_CHARS`.
    """
    rows: list[DecisionRequest] = []
    reasons: list[str] = []
    left = limits.SAMPLE_CHARS
    for state in sample:
        try:
            row = with_state(request, state)
        except InvalidRequest as error:
            reasons.append(error.message)
        else:
            rows.append(row)
            left -= len(row.state.text)
        if left <= 0:
            break
    return rows, reasons
