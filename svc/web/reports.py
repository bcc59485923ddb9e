"""Lists in reports, cut where the report would become too large."""

from __future__ import annotations

from collections.abc import Iterable

from svc import jsontext, limits
from svc.jsontext import JsonObject


def leading(items: Iterable[JsonObject], most_bytes: int = limits.PAGE_BYTES) -> list[JsonObject]:
    """The first of `items`, at least one, as far as their JSON has `most_bytes` together."""
    kept: list[JsonObject] = []
    for item in items:
        most_bytes -= len(jsontext.dumps(item).encode("utf-8", "replace"))
        if kept and most_bytes < 0:
            break
        kept.append(item)
    return kept
