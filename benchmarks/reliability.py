"""A reliability diagram as an SVG file: how often answers were right at each confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SIDE, MARGIN = 320, 48  # pixels: of the square, and around it
COLOURS = ("#c2410c", "#1d4ed8", "#15803d")

Bins = Sequence[Mapping[str, Any]]


def write(path: Path, title: str, series: Mapping[str, Bins]) -> None:
    """Draw each of `series`, bins as in a calibration report, beside the diagonal of the truth."""
    width, height = SIDE + 2 * MARGIN + 150, SIDE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{MARGIN}" y="28" font-size="15">{title}</text>',
        *_axes(),
    ]
    for index, (name, bins) in enumerate(series.items()):
        parts += _series(name, bins, COLOURS[index], MARGIN + 24 + 22 * index)
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _axes() -> list[str]:
    parts = [_line((0, 0), (1, 1), "#888", dashed=True)]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts += [_line((tick, 0), (tick, 1), "#ddd"), _line((0, tick), (1, tick), "#ddd")]
        (x, low), (left, y) = _place(tick, 0), _place(0, tick)
        parts.append(f'<text x="{x}" y="{low + 16}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    middle = MARGIN + SIDE / 2
    parts.append(f'<text x="{middle}" y="{SIDE + MARGIN + 36}" text-anchor="middle">confidence')
    parts.append(f'</text><text x="{MARGIN - 32}" y="{MARGIN - 8}">share that was right</text>')
    return parts


def _series(name: str, bins: Bins, colour: str, legend_y: float) -> list[str]:
    """A line through the bins that hold answers; the more they hold, the larger the point."""
    held = [one for one in bins if one["count"]]
    most = max((one["count"] for one in held), default=1)
    places = [_place(one["confidence"], one["accuracy"]) for one in held]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    legend_x = MARGIN + SIDE + 20
    circles = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3 + 7 * (one["count"] / most) ** 0.5:.1f}" '
        f'fill="{colour}" fill-opacity="0.6"/>'
        for (x, y), one in zip(places, held, strict=True)
    ]
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *circles,
        f'<circle cx="{legend_x}" cy="{legend_y - 4}" r="5" fill="{colour}"/>',
        f'<text x="{legend_x + 12}" y="{legend_y}">{name}</text>',
    ]


def _line(
    start: tuple[float, float], end: tuple[float, float], colour: str, *, dashed: bool = False
) -> str:
    (x1, y1), (x2, y2) = _place(*start), _place(*end)
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"{dashes}/>'


def _place(confidence: float, accuracy: float) -> tuple[float, float]:
    return MARGIN + SIDE * confidence, MARGIN + SIDE * (1 - accuracy)
