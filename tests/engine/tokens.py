"""Tokens with what could have stood in their place, as a provider gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from svc.providers.replies import Token


def token(text: str, *alternatives: tuple[str, float]) -> Token:
    """A token whose alternatives are given with probabilities."""
    rows = tuple((label, math.log(p) if p > 0 else -math.inf) for label, p in alternatives)
    return Token(text, dict(rows).get(text, rows[0][1] if rows else 0.0), rows)


def sure(*texts: str) -> list[Token]:
    """Tokens that stand for themselves, with nothing to read in their alternatives."""
    return [token(text, (text, 0.97), ("zebra", 0.02)) for text in texts]


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(one.text for one in tokens)
