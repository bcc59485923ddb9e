"""Cells of CSV files, of which no spreadsheet is to run any.

A spreadsheet runs a cell that begins with a sign such as `=`, also the wide ones of Asian scripts
(https://owasp.org/www-community/attacks/CSV_Injection). An apostrophe before it has it show the
text. Where its lists are divided by semicolons, it takes each part of such a text for a cell.
"""

from __future__ import annotations

import re

# A part with such a sign, before which white space, quotes and apostrophes may stand. It has no
# separator in it, so that nothing is looked through twice.
_PART = r"(?=(?:[^\S;\t\r\n]|[\"'])*[=+\-@\uff1d\uff0b\uff0d\uff20])"
_RUN = re.compile(r"(^|[;\t\r\n])" + _PART)
_GUARDED = re.compile(r"(^|[;\t\r\n])'" + _PART)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def guarded(text: str) -> str:
    """The text with an apostrophe before each part that a spreadsheet would run; numbers stay."""
    return text if _NUMBER.fullmatch(text) else _RUN.sub(r"\1'", text)


def unguarded(cell: str) -> str:
    """The text that `guarded` made a cell of."""
    return _GUARDED.sub(r"\1", cell)
