"""The rows that are looked at to say what many will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from svc import limits
from svc.engine.stages import text_to_compare, text_to_look_through
from svc.errors import InvalidRequest
from svc.schemas import DecisionRequest, with_state


def rows_of(
    request: DecisionRequest, sample: Sequence[Any]
) -> tuple[list[DecisionRequest], list[str]]:
    """The rows of a sample that can be asked, and why the others cannot.

    Rules may look for thousands of texts in each state, and conditions compare it with thousands of
    values, and of each the prompts are written. So no more rows are looked at once these have
    `SAMPLE_CHARS`, `SAMPLE_SEARCHED_CHARS` with each state as often as rules look into it, the
    conditions `SAMPLE_CONDITIONS_CHARS` or the questions `SAMPLE_OPTIONS` with all of them for
    each row.
    """
    rows: list[DecisionRequest] = []
    reasons: list[str] = []
    left, left_to_search = limits.SAMPLE_CHARS, limits.SAMPLE_SEARCHED_CHARS
    left_to_compare, compared = limits.SAMPLE_CONDITIONS_CHARS, text_to_compare(request, 0)
    left_to_write = limits.SAMPLE_OPTIONS
    options = sum(len(question.option_names) for question in request.questions.values())
    for state in sample:
        try:
            row = with_state(request, state)
        except InvalidRequest as error:
            reasons.append(error.message)
        else:
            rows.append(row)
            left -= len(row.state.text)
            left_to_search -= text_to_look_through(row, 0)
            left_to_compare -= compared
            left_to_write -= options
        if min(left, left_to_search, left_to_compare, left_to_write) <= 0:
            break
    return rows, reasons
