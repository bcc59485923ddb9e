"""The table, on the terminal and in RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from benchmarks.harness import Benchmark, Result

PAGE = Path(__file__).with_name("RESULTS.md")
NOTES = "## Notes"  # from here on the page is written by hand, and kept
_HEAD = ("", "what", "target", "measured", "twin", "ratio", "day")

Cells: TypeAlias = tuple[str, ...]  # of one row, its name first
Measured: TypeAlias = Sequence[tuple[Benchmark, Result]]


def table(rows: Iterable[Cells]) -> str:
    """The rows as a Markdown table, its columns aligned."""
    lines = [_HEAD, *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    head, *body = [_line(line, widths) for line in lines]
    return "\n".join([head, _line(["-" * width for width in widths], widths), *body])


def cells(rows: Measured) -> list[Cells]:
    """What was measured today, as the table has it."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return [
        (benchmark.name, benchmark.what, benchmark.target, *astuple(result), today)
        for benchmark, result in rows
    ]


def write(rows: Iterable[Cells], names: Sequence[str], facts: Sequence[str]) -> None:
    """Put `rows`, measured under `facts`, into the page; other rows and its notes stay.

    `names` are those of all benchmarks, in the order of the page.
    """
    page = PAGE.read_text() if PAGE.exists() else ""
    figures, mark, notes = page.partition(NOTES)
    known = {row[0]: row for row in [*_rows(figures), *rows]}
    listed = "\n".join(f"- {fact}" for fact in facts)
    parts = ["# Results", "Made by `make bench`; README.md says what each row means.", listed]
    parts += [table(known[name] for name in names if name in known)]
    parts += [mark + notes if mark else f"{NOTES}\nNone yet.\n"]
    PAGE.write_text("\n\n".join(parts))


def _rows(figures: str) -> list[Cells]:
    """The rows of a page's table."""
    lines = [line for line in figures.splitlines() if line.startswith("| ")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [row for row in rows[2:] if len(row) == len(_HEAD)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return f"| {' | '.join(padded)} |"
