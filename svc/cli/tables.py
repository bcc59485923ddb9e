"""Tables that commands print, and the figures in their cells."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

from svc.phrases import printable

_GAP = "  "
_FIRST = frozenset({0})


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], text: Collection[int] = _FIRST
) -> list[str]:
    """The lines of a table, which has no line for the head where `head` is empty.

    `text` holds the places of the columns that are aligned to the left, as words are; the others
    are aligned to the right, as numbers are.
    """
    cells = [[printable(cell) for cell in row] for row in ([head] if head else []) + [*rows]]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        columns = enumerate(zip(row, widths, strict=True))
        aligned = (_aligned(cell, space, place in text) for place, (cell, space) in columns)
        lines.append(_GAP.join(aligned).rstrip())
    return lines


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(map(_columns, text))


def percent(share: float | None) -> str:
    """A share such as `85.0%`, or a dash where it is unknown."""
    return "-" if share is None else f"{share:.1%}"


def span(interval: tuple[float, float]) -> str:
    """An interval such as `73.9-91.9%`."""
    return f"{100 * interval[0]:.1f}-{100 * interval[1]:.1f}%"


def decimal(number: float | None) -> str:
    """Three decimals, or a dash."""
    return "-" if number is None else f"{number:.3f}"


def dollars(amount: float) -> str:
    """An amount such as `$0.0012`."""
    return f"${amount:,.4f}"


def milliseconds(duration: float | None) -> str:
    """A duration such as `12 ms` or `1.2 s`, or a dash."""
    if duration is None:
        return "-"
    return f"{duration:.0f} ms" if duration < 1_000 else f"{duration / 1_000:.1f} s"


def _aligned(cell: str, space: int, left: bool) -> str:
    padding = " " * (space - width(cell))
    return cell + padding if left else padding + cell


def _columns(character: str) -> int:
    """None for an accent on the character before, two for a wide one such as 語."""
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
