"""A sample of many rows that is the same in whatever order and in whichever parts they come."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from svc import jsontext, limits

# The characters of all states of a sample, so that a request takes them. Of longer states, a
# sample has fewer.
SAMPLE_CHARS = 2_500_000


def drawn(rows: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Rows drawn by their ids, each of which is as likely as any other; ids with states.

    The rows that are drawn from those of all parts are those of the whole.
    """
    chosen = heapq.nsmallest(limits.FORECAST_SAMPLE, rows, key=lambda row: _place(row[0]))
    return [(row_id, _cut(state)) for row_id, state in chosen]


def sample(rows: Iterable[tuple[str, Any]]) -> list[Any]:
    """The states of the rows that are drawn, as many of them as a request takes."""
    states = [state for _, state in drawn(rows)]
    sizes = accumulate(len(jsontext.as_text(state)) for state in states)
    return [state for state, size in zip(states, sizes, strict=True) if size <= SAMPLE_CHARS]


def _place(row_id: str) -> bytes:
    """A place in an order that has nothing to do with what rows hold."""
    return hashlib.blake2b(row_id.encode(errors="replace"), digest_size=8).digest()


def _cut(state: Any) -> Any:
    """A state that is too long to be asked about is still too long, and by little."""
    text = jsontext.as_text(state)
    return state if len(text) <= limits.STATE_CHARS else text[: limits.STATE_CHARS + 1]
