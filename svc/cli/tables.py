"""Tables that commands print, and the figures in their cells."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import Any

import click

from svc import jsontext
from svc.phrases import printable

_GAP = "  "
_FIRST = frozenset({0})
# A column of words is not made narrower than this.
_NARROWEST = 12

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    text: Collection[int] = _FIRST,
    room: int | None = None,
) -> list[str]:
    """The lines of a table, which has no line for the head where `head` is empty.

    `text` holds the places of the columns that are aligned to the left, as words are; the others
    are aligned to the right, as numbers are. Within `room`, by default the width of the terminal,
    words are cut; columns that find no room even so follow below, beside the first column again.
    """
    room = terminal() if room is None else room
    cells = [[printable(cell) for cell in row] for row in ([head] if head else []) + [*rows]]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    if room is not None:
        _narrow(widths, text, room)
    lines: list[str] = []
    for places in _groups(widths, room):
        lines += [""] if lines else []
        lines += [_line(row, widths, places, text) for row in cells]
    return lines


def plain(lines: Iterable[str]) -> list[str]:
    """Lines without the characters that a terminal would obey."""
    return [printable(line) for line in lines]


def terminal() -> int | None:
    """How many columns standard output shows, None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def echo_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    echo_lines(jsontext.dumps(value))


def echo_lines(text: str) -> None:
    """Print lines of JSON; a terminal gets escapes for the characters that it would obey."""
    click.echo(jsontext.visible(text) if sys.stdout.isatty() else text)


def _narrow(widths: list[int], text: Collection[int], room: int) -> None:
    """Make columns of words narrower, the widest first, until the table fits or none can be."""
    while (over := _together(widths) - room) > 0:
        place = max(text, key=lambda one: widths[one], default=None)
        if place is None or widths[place] <= _NARROWEST:
            return
        second = max((widths[one] for one in text if one != place), default=0)
        widths[place] = max(widths[place] - over, min(second, widths[place] - 1), _NARROWEST)


def _groups(widths: Sequence[int], room: int | None) -> Iterator[list[int]]:
    """The places of the columns that stand beside each other; the first stands in every group."""
    group: list[int] = []
    for place in range(len(widths)):
        wider = [widths[one] for one in [*group, place]]
        if room is not None and len(group) > 1 and _together(wider) > room:
            yield group
            group = [0]
        group = [*group, place]
    yield group


def _together(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _line(
    row: Sequence[str], widths: Sequence[int], places: Sequence[int], text: Collection[int]
) -> str:
    aligned = (_aligned(row[place], widths[place], place in text) for place in places)
    return _GAP.join(aligned).rstrip()


def _cut(cell: str, space: int) -> str:
    """The cell, or its start and an ellipsis, in so many columns of a terminal."""
    if width(cell) <= space:
        return cell
    ends = accumulate(map(_columns, cell))
    return f"{cell[: sum(1 for _ in takewhile(lambda end: end < space, ends))]}…"


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


def moment(milliseconds_since_epoch: int) -> str:
    """A moment such as `2026-11-22T15:04:05Z`."""
    return f"{datetime.fromtimestamp(milliseconds_since_epoch / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _aligned(cell: str, space: int, left: bool) -> str:
    cell = _cut(cell, space)
    padding = " " * (space - width(cell))
    return cell + padding if left else padding + cell


def _columns(character: str) -> int:
    """None for an accent on the character before, two for a wide one such as 語."""
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
