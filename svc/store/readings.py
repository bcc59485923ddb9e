"""Raw readings as labels have them: eight bytes a number, or JSON where an earlier version wrote.

Thousands are read at once for fits, reports and prediction sets, where most of the time went into
reading JSON.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence

from svc.store.label_records import Members

_NUMBER_BYTES = 8


def packed(p: Sequence[float]) -> bytes:
    """The numbers in the order of bytes that nearly all machines have, the lowest first."""
    return _lowest_first(array("d", p)).tobytes()


def unpacked(stored: bytes | str) -> Sequence[float]:
    """The numbers again. Raises `ValueError` where they are damaged."""
    if isinstance(stored, str):
        return array("d", json.loads(stored))
    numbers = array("d")
    numbers.frombytes(stored)
    return _lowest_first(numbers)


def packed_members(members: Members) -> bytes:
    """A line of JSON with how many numbers each has, null without any, and then these."""
    counts = {model: None if p is None else len(p) for model, p in members.items()}
    numbers = [packed(p) for p in members.values() if p is not None]
    return b"\n".join([json.dumps(counts, ensure_ascii=False).encode(), b"".join(numbers)])


def unpacked_members(stored: bytes | str | None) -> Members | None:
    """What each member said, None of a single model. Raises `ValueError` where it is damaged."""
    if stored is None:
        return None
    if isinstance(stored, str):
        said = json.loads(stored)
        return {model: None if p is None else array("d", p) for model, p in said.items()}
    line, _, numbers = stored.partition(b"\n")
    members: dict[str, Sequence[float] | None] = {}
    begin = 0
    for model, count in json.loads(line).items():
        end = begin + (count or 0) * _NUMBER_BYTES
        members[model] = None if count is None else unpacked(numbers[begin:end])
        begin = end
    return members


def _lowest_first(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
