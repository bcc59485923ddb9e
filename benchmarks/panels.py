"""Curves over the same x axis as an SVG file, one panel below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, GAP = 640, 150, 50  # pixels: of each panel, and between them
LEFT, TOP, RIGHT = 60, 50, 90
COLOURS = ("#1d4ed8", "#c2410c", "#15803d")

Panel = Mapping[str, Sequence[float]]  # values by the name of their curve


def write(path: Path, title: str, x: Sequence[float], panels: Mapping[str, Panel]) -> None:
    """Draw `panels` by their title; every curve has a value for each of `x`, from zero on."""
    width = LEFT + WIDTH + RIGHT
    height = TOP + len(panels) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>',
    ]
    for row, (name, panel) in enumerate(panels.items()):
        parts += _panel(TOP + row * (HEIGHT + GAP), name, x, panel)
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _panel(top: float, title: str, x: Sequence[float], panel: Panel) -> list[str]:
    most = max(max(values) for values in panel.values()) or 1.0
    bottom = top + HEIGHT
    parts = [f'<text x="{LEFT}" y="{top - 6}">{escape(title)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * HEIGHT
        parts.append(f'<path d="M{LEFT} {y}h{WIDTH}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{share * most:.3g}</text>'
        )
        at = LEFT + share * WIDTH
        label = f"{share * x[-1]:,.0f}"
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    for index, (name, values) in enumerate(panel.items()):
        points = " ".join(
            f"{LEFT + WIDTH * at / x[-1]:.1f},{bottom - HEIGHT * value / most:.1f}"
            for at, value in zip(x, values, strict=True)
        )
        colour = COLOURS[index]
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        legend = f'x="{LEFT + WIDTH + 8}" y="{top + 14 + 16 * index}" fill="{colour}"'
        parts.append(f"<text {legend}>{escape(name)}</text>")
    return parts
