"""The table, on the terminal and in RESULTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from benchmarks.harness import Benchmark, Result

PAGE = Path(__file__).with_name("RESULTS.md")
NOTES = "## Notes"  # from here on the page is written by hand, and kept
_HEAD = ("", "what", "target", "measured", "twin", "ratio")


Measured: TypeAlias = Sequence[tuple[Benchmark, Result]]


def table(rows: Measured) -> str:
    """The rows as a Markdown table, its columns aligned."""
    lines = [_HEAD, *(_cells(benchmark, result) for benchmark, result in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    head, *body = [_line(line, widths) for line in lines]
    return "\n".join([head, _line(["-" * width for width in widths], widths), *body])


def write(rows: Measured, facts: Sequence[str]) -> None:
    """Replace the page's figures, measured under `facts`; its notes stay."""
    _, mark, notes = (PAGE.read_text() if PAGE.exists() else "").partition(NOTES)
    listed = "\n".join(f"- {fact}" for fact in (f"{datetime.now(UTC):%Y-%m-%d}", *facts))
    parts = ["# Results", "Made by `make bench`; README.md says what each row means.", listed]
    parts += [table(rows), mark + notes if mark else f"{NOTES}\nNone yet.\n"]
    PAGE.write_text("\n\n".join(parts))


def _cells(benchmark: Benchmark, result: Result) -> tuple[str, ...]:
    return (benchmark.name, benchmark.what, benchmark.target, *astuple(result))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
