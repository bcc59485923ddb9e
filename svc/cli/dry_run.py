"""What a run over many lines will take, told before any model is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from svc import jsontext
from svc.batch import InputLine, duration
from svc.cli.tables import dollars, table
from svc.engine.forecast import ModelForecast
from svc.errors import ApiError

_HEAD = ("model", "calls", "a minute", "time", "dollars")
_NOTE = (
    "Each row is what a model takes that is asked about every line in one attempt. Dollars are "
    "estimated at 4 characters a token."
)


@dataclass(slots=True)
class Counted:
    """The lines that can be asked, the characters of their states, and the others."""

    lines: int = 0
    chars: int = 0
    refused: int = 0
    first: str = ""


def count(lines: Iterable[InputLine]) -> Counted:
    """What is in some lines of an input."""
    counted = Counted()
    for line in lines:
        try:
            state = line.read().value
        except ApiError as error:
            counted.refused += 1
            counted.first = counted.first or f"the first, line {line.number:,}: {error.message}"
        else:
            counted.lines += 1
            counted.chars += len(jsontext.as_text(state))
    return counted


def told(counted: Counted, models: Sequence[ModelForecast]) -> list[str]:
    """The lines that say it; a server alone knows its `models`."""
    each = counted.chars // max(1, counted.lines)
    lines = [f"{counted.lines:,} lines to ask, about {each:,} characters each"]
    if counted.refused:
        lines.append(f"{counted.refused:,} lines that cannot be asked; {counted.first}")
    if not models:
        return [*lines, "Calls, time and dollars depend on the models of the server."]
    rows = [_row(counted, one) for one in models]
    return [*lines, "", *table(_HEAD, rows), "", *_missing(models), *_together(counted, models)]


def _row(counted: Counted, one: ModelForecast) -> tuple[str, ...]:
    calls, cost = counted.lines * one.calls, one.dollars(counted.lines, counted.chars)
    rate = "-" if one.rpm is None else f"{one.rpm:,}"
    time = "-" if one.rpm is None else duration(60 * calls / one.rpm)
    return one.model, f"{calls:,}", rate, time, "-" if cost is None else dollars(cost)


def _missing(models: Sequence[ModelForecast]) -> list[str]:
    unknown = {one.provider for one in models if one.price is None}
    return [
        f"No price is known at {name}; SVC_PROVIDER_{name.upper()}_PRICE sets it."
        for name in sorted(unknown)
    ]


def _together(counted: Counted, models: Sequence[ModelForecast]) -> list[str]:
    """What all models take together, where there are several; those of a provider share a rate."""
    if len(models) == 1:
        return [_NOTE]
    minutes: dict[str, float] = defaultdict(float)
    for one in models:
        minutes[one.provider] += counted.lines * one.calls / (one.rpm or float("inf"))
    calls = sum(counted.lines * one.calls for one in models)
    cost = sum(one.dollars(counted.lines, counted.chars) or 0.0 for one in models)
    most = f"{calls:,} calls, {duration(60 * max(minutes.values()))}, {dollars(cost)}"
    return [f"All of them together: at most {most}.", _NOTE]
