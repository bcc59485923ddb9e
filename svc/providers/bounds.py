"""Numbers that a provider found too large or too small: what its message allows instead."""

from __future__ import annotations

import re

FEWER_ALTERNATIVES = (5, 1)  # asked for one after the other where no message says how many
LEAST_ROOM = 64  # output tokens below which a call is not worth making
MOST_NEEDED = 4_096  # output tokens above which no provider's least limit lies
TOO_LARGE = re.compile(
    r"too (large|many|high|big)|more than|at most|less than|up to|exceed|greater|maximum|max\b"
    r"|<=|between|range|limit(ed)? (to|of|is)|or lower|or fewer",
    re.IGNORECASE,
)
_TOO_SMALL = re.compile(
    r"too (small|low|few)|at least|minimum|below|greater than or equal|>=|or (more|higher)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.]*\d)")
_CONTEXT_LENGTH = re.compile(r"context (?:length|window|size)\D{0,30}(\d{3,8})", re.IGNORECASE)
_PROMPT_LENGTH = re.compile(
    r"(\d+) (?:input tokens|in the messages|in your prompt|of text input|tokens in the)"
    r"|(?:request has|prompt (?:contains|has)|messages resulted in) (?:at least )?(\d+)",
    re.IGNORECASE,
)


def fewer_alternatives(message: str, sent: int) -> int | None:
    """How many alternatives a message allows that refuses `sent` of them; None for none.

    Where it does not say, fewer are tried.
    """
    if not TOO_LARGE.search(message):
        return None
    allowed = [number for number in _numbers(message) if 1 <= number < sent]
    return max(allowed or [n for n in FEWER_ALTERNATIVES if n < sent], default=None)


def left_of_context(message: str) -> int | None:
    """The output tokens that a prompt leaves of a model's context, where a message tells both."""
    length, used = _CONTEXT_LENGTH.search(message), _PROMPT_LENGTH.search(message)
    if length is None or used is None:
        return None
    left = int(length[1]) - int(used[1] or used[2])
    return left if left >= LEAST_ROOM else None


def output_limit_words(name: str) -> str:
    """A pattern of what providers call the output limit that was sent under `name`."""
    return rf"(?<![A-Za-z0-9_])({name}|max_(output_|new_)?tokens|maxOutputTokens)"


def output_limit(message: str, sent: int) -> tuple[int, bool] | None:
    """The output limit that a message allows instead of `sent`, and whether that is the most.

    Otherwise it is the least. None where it does not say.
    """
    numbers = _numbers(message)
    more = [number for number in numbers if sent < number <= MOST_NEEDED]
    less = [number for number in numbers if LEAST_ROOM <= number < sent]
    if more and _TOO_SMALL.search(message):
        return min(more), False
    if less and TOO_LARGE.search(message):
        return max(less), True
    return None


def _numbers(message: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(message)]
