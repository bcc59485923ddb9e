"""Decision ids: `dec_` and a ULID in Crockford's base 32 (https://github.com/ulid/spec)."""

from __future__ import annotations

import re
import secrets

PREFIX = "dec_"

# These bits of a ULID stand below the 48 bits of unix milliseconds.
RANDOM_BITS = 80

_HIGHEST = 2**128 - 1

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_ID = re.compile(rf"{PREFIX}([0-7][{_DIGITS}]{{25}})")


def following(last: bytes | None, milliseconds: int, count: int) -> list[bytes]:
    """`count` ULIDs of this moment, each above the one before it and all above `last`."""
    first = milliseconds << RANDOM_BITS | secrets.randbits(RANDOM_BITS)
    if last is not None:
        first = max(first, int.from_bytes(last, "big") + 1)
    return [number.to_bytes(16, "big") for number in range(first, first + count)]


def earliest(milliseconds: int) -> bytes:
    """The lowest ULID of a moment; of one beyond the year 10889 the highest of all."""
    lowest = max(milliseconds, 0) << RANDOM_BITS
    return min(lowest, _HIGHEST).to_bytes(16, "big")


def text(ulid: bytes) -> str:
    """The id that callers see; 26 digits of five bits, two at a time."""
    number = int.from_bytes(ulid, "big")
    return PREFIX + "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def parse(decision_id: str) -> bytes | None:
    """The ULID of an id, None for any other text."""
    match = _ID.fullmatch(decision_id)
    if match is None:
        return None
    number = 0
    for digit in match[1]:
        number = number << 5 | _VALUES[digit]
    return number.to_bytes(16, "big")
