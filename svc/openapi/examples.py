"""Real requests with the answers that the demonstration model gives to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Exchange:
    """One exchange with a server; `request` is None where there is no body."""

    path: str
    name: str
    summary: str
    answer: Any
    request: Any = None
    query: str = ""


@cache
def examples() -> tuple[Exchange, ...]:
    """All examples, in an order in which they can be sent."""
    text = resources.files(__package__).joinpath("examples.json").read_text("utf-8")
    return tuple(Exchange(**one) for one in json.loads(text))


def of_route(path: str) -> list[Exchange]:
    """The examples of one route."""
    return [example for example in examples() if example.path == path]
