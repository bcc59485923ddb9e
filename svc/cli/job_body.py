"""The body of `POST /v1/batch` out of an input: what all rows share, then a row in each line."""

from __future__ import annotations

import itertools
import os
from contextlib import closing

from svc import jsontext, limits
from svc.batch import Form, Input, InputLine, open_input
from svc.cli.notices import notice
from svc.cli.question_files import read_named
from svc.errors import ApiError, InvalidRequest, SettingsError
from svc.jsontext import JsonObject
from svc.phrases import quoted
from svc.schemas import BATCH, load_decision

# So many lines that cannot be asked about are told, because many are wrong in the same way.
_TOLD = 10
# What no decision has, and what of it a forecast does not have either.
NOT_FORECAST = ("expires_after_hours", "budget_usd")
_OF_THE_JOB = (*NOT_FORECAST, BATCH)


def body_of_input(
    questions: str, fields: JsonObject, source: str, form: Form, limit: int | None
) -> bytes:
    """The body of a job: questions of a file or a recipe about the first `limit` lines of an input.

    Raises `SettingsError`, and `InvalidRequest` for fields that do not fit the questions.
    """
    shared = {"questions": read_named(questions).fields, **fields}
    of_decision = {name: value for name, value in shared.items() if name not in _OF_THE_JOB}
    load_decision({**of_decision, "state": {}})
    with closing(open_input(source, form)) as opened:
        return job_body(shared, opened, limit)


def check_apart(output: str, *inputs: str) -> None:
    """Raise `SettingsError` where the results of a job would overwrite what they are about."""
    # A recipe is no file, and standard input has no name.
    there = filter(os.path.exists, inputs if os.path.exists(output) else ())
    if any(os.path.samefile(output, one) for one in there):
        raise SettingsError(f"output {output!r} is also read from; name another file")


def job_body(shared: JsonObject, source: Input, limit: int | None) -> bytes:
    """The body of a job of the first `limit` lines, by default of all.

    The id of a row is the caller's own, or the number of the line. Lines that cannot be asked about
    are told on standard error. Raises `SettingsError` where there are some, or too many lines.
    """
    if source.total is not None:
        _check_count(min(source.total, limit or source.total))
    data = bytearray(_line(shared))
    numbers: dict[str, int] = {}
    count = wrong = 0
    for line in itertools.islice(source.lines, limit):
        count += 1
        _check_count(count)
        try:
            row = _line(_row(line, numbers))
        except ApiError as error:
            wrong += 1
            if wrong <= _TOLD:
                notice(f"line {line.number:,}: {error.message}")
        else:
            # Where a line is wrong nothing is sent.
            data += b"" if wrong else row
    if wrong:
        raise SettingsError(
            f"{wrong:,} of {count:,} lines cannot be asked about, and a job is taken whole: "
            "nothing was sent"
        )
    if not count:
        raise SettingsError("the input has no line to ask about")
    return bytes(data)


def _check_count(rows: int) -> None:
    if rows > limits.JOB_ROWS:
        raise SettingsError(
            f"the input has over {limits.JOB_ROWS:,} lines, more than a job may have: nothing was "
            "sent; --limit takes the first of them, and svc map --url asks about any number"
        )


def _row(line: InputLine, numbers: dict[str, int]) -> JsonObject:
    """A row of the job; `numbers` are those of the lines so far, by id. Raises `ApiError`."""
    record = line.read()
    name = line.row_id(record)
    first = numbers.setdefault(name, line.number)
    if first != line.number:
        raise InvalidRequest(f"{quoted(name)} is the id of line {first:,} too")
    ref = {} if record.ref is None else {"ref": record.ref}
    return {"id": name, "state": record.value, **ref}


def _line(value: JsonObject) -> bytes:
    return f"{jsontext.dumps(value)}\n".encode("utf-8", "replace")
