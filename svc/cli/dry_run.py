"""What a run over many lines will take, told before any model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from svc import jsontext
from svc.batch import InputLine, duration
from svc.bulk.sampling import sample
from svc.cli.asking import answered
from svc.cli.server import Server
from svc.cli.tables import dollars, plain, table
from svc.errors import ApiError, SvcError
from svc.jsontext import JsonObject
from svc.settings import provider_variable

PATH = "/v1/forecast"
_HEAD = ("model", "calls", "a minute", "time", "dollars")
_NOTE = (
    "Each row is what a model takes that is asked about every line in one attempt. Dollars are "
    "estimated at 4 characters a token."
)
_OF_JOBS = "A job takes half of a provider's rate, so that it takes {} at least."


@dataclass(slots=True)
class Counted:
    """The lines that can be asked, the states of some of them, and the lines that cannot."""

    lines: int = 0
    refused: int = 0
    first: str = ""
    sample: Sequence[Any] = ()


def count(lines: Iterable[InputLine]) -> Counted:
    """What is in some lines of an input."""
    counted = Counted()
    counted.sample = sample(_read(lines, counted))
    return counted


def _read(lines: Iterable[InputLine], counted: Counted) -> Iterator[tuple[str, Any]]:
    """The id and the state of each line that can be asked."""
    for line in lines:
        try:
            record = line.read()
        except ApiError as error:
            counted.refused += 1
            counted.first = counted.first or f"the first, line {line.number:,}: {error.message}"
        else:
            counted.lines += 1
            yield line.row_id(record), record.value


def forecast(server: Server, shared: JsonObject, sample: Sequence[Any], rows: int) -> JsonObject:
    """What a running server says that so many rows take, which are asked alike.

    Raises `SvcError`.
    """
    body = {**shared, "sample": sample, "rows": rows}
    sent = jsontext.dumps(body).encode("utf-8", "replace")
    answer = answered(server, "POST", PATH, sent).value
    if not isinstance(answer, dict) or "models" not in answer:
        raise SvcError("the server answered with something that is no forecast; see --url")
    return answer


def told(forecast: JsonObject, counted: Counted | None = None, job: bool = False) -> list[str]:
    """The lines that say what `POST /v1/forecast` answers, by the names that it has there.

    `counted` has lines that were left out before. A `job` leaves rates to others.
    """
    rows = [_row(one) for one in forecast["models"]]
    lines = [*_asked(forecast, counted), "", *table(_HEAD, rows), "", *_missing(forecast)]
    if len(rows) > 1:
        lines.append(_together(forecast))
    if job and forecast["job_minutes"] is not None:
        lines.append(_OF_JOBS.format(duration(60 * forecast["job_minutes"])))
    # What the server says may hold anything.
    return [*plain(lines), _NOTE]


def _asked(forecast: JsonObject, counted: Counted | None) -> Iterator[str]:
    by = "" if forecast["sampled"] == forecast["rows"] else f", by {forecast['sampled']} of them"
    each = f"about {forecast['state_chars']:,} characters each{by}"
    yield f"{forecast['asked']:,} lines to ask, {each}"
    if counted is not None and counted.refused:
        yield f"{counted.refused:,} lines that cannot be asked; {counted.first}"
    if forecast["refused"]:
        share = f"{forecast['refused']} of the {forecast['sampled']} looked at"
        yield f"{share} cannot be asked; the first of them: {forecast['refused_because']}"


def _row(one: JsonObject) -> tuple[str, ...]:
    rate = "-" if one["calls_a_minute"] is None else f"{one['calls_a_minute']:,}"
    time = "-" if one["minutes"] is None else duration(60 * one["minutes"])
    return one["model"], f"{one['calls']:,}", rate, time, _dollars(one["cost_usd"])


def _together(forecast: JsonObject) -> str:
    """What all models take, where there are several; those of a provider share a rate."""
    minutes, cost = duration(60 * (forecast["minutes"] or 0)), _dollars(forecast["cost_usd"])
    return f"All of them together: at most {forecast['calls']:,} calls, {minutes}, {cost}."


def _dollars(cost_usd: float | None) -> str:
    return "-" if cost_usd is None else dollars(cost_usd)


def _missing(forecast: JsonObject) -> list[str]:
    return [
        f"No price is known at {name}; {provider_variable(name, 'PRICE')} sets it."
        for name in forecast["without_price"]
    ]
