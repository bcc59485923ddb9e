"""Texts as cells that no spreadsheet runs, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.cells import guarded, unguarded


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1d1", "'\uff1d1"),
        ("  @x", "'  @x"),
        ("a;=1", "a;'=1"),
        ("a\n\t-x", "a\n\t'-x"),
        ('x;"=HYPERLINK(B1);y', "x;'\"=HYPERLINK(B1);y"),
        ('"=1', "'\"=1"),
        ("'=1", "''=1"),
        ("-12.5", "-12.5"),
        ("'-12.5", "''-12.5"),
        ("a = 1", "a = 1"),
        ("it's", "it's"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it(text: str, cell: str) -> None:
    assert guarded(text) == cell
    assert unguarded(cell) == text


@given(st.text("=-@+;'\"\t\n 1a\uff1d"))
def test_every_text_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text
