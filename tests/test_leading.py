from __future__ import annotations

from svc import limits
from svc.jsontext import leading

ITEMS = [{"week": number} for number in range(4)]


def test_what_is_within_the_bound_is_kept_whole() -> None:
    assert leading(ITEMS, limits.PAGE_BYTES) == ITEMS
    assert leading([], 1) == []


def test_what_is_beyond_it_is_left_out_but_not_the_first() -> None:
    assert leading(ITEMS, 2 * len('{"week":0}')) == ITEMS[:2]
    assert leading(iter(ITEMS), 1) == ITEMS[:1]
