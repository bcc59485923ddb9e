"""A run over all lines: results in order, error lines, and when to stop before the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from svc import jsontext
from svc.batch.forms import Record
from svc.batch.inputs import InputLine
from svc.batch.outputs import Output
from svc.batch.progress import Progress
from svc.errors import ApiError, InternalError, Pending, QuotaSpent

log = logging.getLogger(__name__)

# After so many failures of the models in a row the run stops, because this is an outage.
FAILURES = 10
# The most lines that are held back until it is known whether an outage began before them.
HELD = 1_000
# What a line of the output begins with; an answer cannot say this of itself.
_OURS = ("line", "error")
# The lowest status of an error that the line did not cause.
_MODELS_FAULT = 429


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The fields that are written for an answered line, and its cost in dollars."""

    fields: Mapping[str, Any]
    cost_usd: float


AnswerLine = Callable[[Record], LineAnswer]


class RunEnds(Exception):
    """Neither this line nor a later one can be answered now; the message says why."""


class Kind(Enum):
    """The outcome of a line.

    It is refused where the line itself is invalid, and failed where no model answered. A line at
    which the run ends has no result.
    """

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    END = "end"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a line with this number, and the output line for it."""

    kind: Kind
    data: bytes
    message: str = ""
    line: int = 0
    cost_usd: float = 0.0


@dataclass(slots=True)
class Tally:
    """The counts of a run; `lines` and `errors` include those of earlier runs in the output.

    `unanswered` are the error lines of this run for which no model answered, and `stopped` says
    why it ended before its input did. `last` is the number of the line written last.
    """

    lines: int
    errors: int
    last: int = 0
    unanswered: int = 0
    cost_usd: float = 0.0
    stopped: str = ""
    held: list[Result] = field(default_factory=list)


def answer_line(answer: AnswerLine, line: InputLine) -> Result:
    """Answer one line; every failure is a result too. Raises `Pending` alone."""
    try:
        answered = answer(line.read())
        fields = {name: answered.fields[name] for name in answered.fields if name not in _OURS}
        data = _encoded(line, fields)
    except (QuotaSpent, RunEnds) as error:
        return Result(Kind.END, b"", str(error))
    except ApiError as error:
        return _error_line(line, error)
    except Pending:
        raise
    except Exception:
        # A failure of one line must not end the run.
        log.exception("line %d failed in an unforeseen way", line.number)
        return _error_line(line, InternalError("svc itself failed at this line, not a model"))
    return Result(Kind.ANSWERED, data, line=line.number, cost_usd=answered.cost_usd)


def write_all(
    results: Iterable[Result],
    output: Output,
    progress: Progress,
    tally: Tally,
    outage: int | None = FAILURES,
) -> None:
    """Write every result, in order, until the run ends or too many failures in a row stop it.

    Failures are held back until a line after them is answered. Those of an outage, which are
    `outage` in a row, are not written, so that a later run answers these lines; with None they
    are results like any other. `tally` is correct at any moment. Raises `SettingsError` when the
    output cannot be written.
    """
    failures = 0
    told = False
    for result in results:
        if result.kind is Kind.END:
            tally.stopped = result.message
            return
        if result.kind is not Kind.ANSWERED and not told:
            told = True
            progress.tell(f"The first error, of line {result.line:,}: {result.message}")
        tally.held.append(result)
        failures = _failures(failures, result.kind)
        if failures == outage:
            tally.stopped = (
                f"no model answered {failures} lines in a row, the last time: {result.message} "
                "(SVC_LOG_LEVEL=warning shows more)"
            )
            return
        if not failures or len(tally.held) >= HELD:
            _flush(output, tally)
        progress.show(tally.lines, tally.errors, tally.cost_usd)
    _flush(output, tally)


def _failures(before: int, kind: Kind) -> int:
    """How many failures in a row there are now; a refused line says nothing about the models."""
    if kind is Kind.FAILED:
        return before + 1
    return before if kind is Kind.REFUSED else 0


def _flush(output: Output, tally: Tally) -> None:
    for result in tally.held:
        output.write(result.data)
        tally.lines += 1
        tally.last = result.line
        tally.errors += result.kind is not Kind.ANSWERED
        tally.unanswered += result.kind is Kind.FAILED
        tally.cost_usd += result.cost_usd
    tally.held.clear()


def _kind(error: ApiError) -> Kind:
    return Kind.FAILED if error.status >= _MODELS_FAULT else Kind.REFUSED


def _error_line(line: InputLine, error: ApiError) -> Result:
    shown = {"error": {"type": error.type, "message": error.message}}
    return Result(_kind(error), _encoded(line, shown), error.message, line.number)


def _encoded(line: InputLine, fields: Mapping[str, Any]) -> bytes:
    text = jsontext.dumps({"line": line.number, **fields})
    return f"{text}\n".encode("utf-8", "replace")
