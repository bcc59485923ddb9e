"""Numbers that a provider found too large or too small: what its message allows instead."""

from __future__ import annotations

import re

# These are tried one after the other where no message says how many are allowed.
FEWER_ALTERNATIVES = (5, 1)

# A call with a lower output limit is not worth making.
LEAST_OUTPUT_TOKENS = 64

# No provider demands an output limit above this one.
HIGHEST_MINIMUM_TOKENS = 4_096

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
_CONTEXT_LENGTH = re.compile(
    r"(?:context (?:length|window|size)|max_new_tokens\W{0,3} must be)\D{0,30}(\d{3,8})",
    re.IGNORECASE,
)
# Each number is tried from its first digit alone, so that a long run of them costs no more.
_PROMPT_LENGTH = re.compile(
    r"(?<!\d)(\d{1,8}) "
    r"(?:input tokens|`?inputs`? tokens|in the messages|in your prompt|of text input|tokens in the)"
    r"|(?:request has|prompt (?:contains|has)|messages resulted in) (?:at least )?(\d{1,8})",
    re.IGNORECASE,
)
# The prompt and the output limit together, above what fits.
_SUM = re.compile(r"(?<!\d)(\d{1,8}) \+ \d{1,8} > (\d{3,8})")
# How many tokens a minute may have, and how many this one call would take.
_RATE = re.compile(
    r"\bLimit:? (\d{1,12}),? (?:Used:? \d{1,12},? )?Requested:? (\d{1,12})", re.IGNORECASE
)
# What is said of the prompt, whose length is another one with the next call.
_PROMPT = re.compile(
    r"\binputs\b|input (tokens|length)|prompt|messages|\b(total|sum)\b|\+", re.IGNORECASE
)


def fewer_alternatives(message: str, sent: int) -> int | None:
    """How many alternatives a message allows that refuses `sent` of them; None where none are.

    Where it does not say, fewer are tried.
    """
    if not TOO_LARGE.search(message):
        return None
    allowed = [number for number in _numbers(message) if 1 <= number < sent]
    return max(allowed or [number for number in FEWER_ALTERNATIVES if number < sent], default=None)


def left_of_context(message: str) -> int | None:
    """The output tokens that fit beside the prompt, where a message has both lengths, else None."""
    length, used = _CONTEXT_LENGTH.search(message), _PROMPT_LENGTH.search(message)
    if length is not None and used is not None:
        left = int(length[1]) - int(used[1] or used[2])
    elif (added := _SUM.search(message)) is not None:
        left = int(added[2]) - int(added[1])
    else:
        return None
    return left if left >= LEAST_OUTPUT_TOKENS else None


def output_limit_words(name: str) -> str:
    """A pattern of what providers call the output limit that was sent under `name`."""
    return rf"(?<![A-Za-z0-9_])({name}|max_(output_|new_)?tokens|maxOutputTokens)"


def output_limit(message: str, sent: int) -> tuple[int, bool] | None:
    """The output limit that a message allows instead of `sent`, and whether that is the most.

    Otherwise it is the least. None where it does not say.
    """
    numbers = _numbers(message)
    more = [number for number in numbers if sent < number <= HIGHEST_MINIMUM_TOKENS]
    less = [number for number in numbers if LEAST_OUTPUT_TOKENS <= number < sent]
    if more and _TOO_SMALL.search(message):
        return min(more), False
    if less and TOO_LARGE.search(message):
        return max(less), True
    return None


def is_above_every_rate(message: str) -> bool:
    """Whether a message says that this one call would take more tokens than a minute may have."""
    rate = _RATE.search(message)
    return rate is not None and int(rate[2]) > int(rate[1])


def is_of_the_prompt(message: str) -> bool:
    """Whether a limit depends on how long the prompt is that was sent, so that others have more."""
    return _PROMPT.search(message) is not None


def _numbers(message: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(message)]
