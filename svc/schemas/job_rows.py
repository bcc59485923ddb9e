"""The rows of `POST /v1/batch`, each of which is checked before the job is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from marshmallow import Schema, ValidationError

from svc import jsontext, limits
from svc.errors import InvalidJson
from svc.jsontext import JsonObject
from svc.phrases import quoted
from svc.schemas.decision import StateField
from svc.schemas.messages import ERRORS_SHOWN
from svc.schemas.references import RefField, RowIdField, TagsField, has_sound_tags, is_sound_ref


class JobRowSchema(Schema):
    """One row of a job."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    id = RowIdField("Your own id of the row, unique in the job. No model sees it.", required=True)
    state = StateField("The input to judge, as `POST /v1/decide` takes it.", required=True)
    ref = RefField("The `ref` of the row's decision.")
    tags = TagsField("The `tags` of the row's decision.")


# Each row is checked by these alone: a schema takes three times as long for thousands of them.
_FIELDS = JobRowSchema().fields

# A state in a row of so many characters is never too long, though numbers may be written longer.
_SHORT_CHARS = limits.STATE_CHARS // 8

# JSON writes a character with twelve at most, and beside its state a row has few.
_LONGEST_CHARS = 12 * limits.STATE_CHARS + 100_000


# So many rows are written together, which takes little memory.
_WRITTEN_TOGETHER = 1_000


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """The JSON of each row, and the number of the first whose state is no object, if any."""

    texts: Sequence[str]
    first_without_fields: int | None


def checked(rows: list[Any]) -> CheckedRows:
    """Check rows, given as JSON values or as lines of JSON. Raises `ValidationError`."""
    texts: list[str] = []
    numbers: dict[str, int] = {}
    without_fields: int | None = None
    errors: JsonObject = {}
    for number, (given, written) in enumerate(zip(rows, _written(rows), strict=True), 1):
        try:
            row, text = _parsed(given, written)
            _check(row, len(text) <= _SHORT_CHARS)
            _count(row["id"], numbers, number)
        except ValidationError as error:
            errors[str(number)] = error.messages
            if len(errors) == ERRORS_SHOWN:
                # Many are wrong in the same way, and nobody wants to read of each.
                break
            continue
        if without_fields is None and not isinstance(row["state"], dict):
            without_fields = number
        texts.append(text)
    if errors:
        raise ValidationError(errors)
    return CheckedRows(texts, without_fields)


def _written(rows: list[Any]) -> Iterator[str | None]:
    """The JSON of each row that is a value; None for lines, and near one nested too deeply."""
    for start in range(0, len(rows), _WRITTEN_TOGETHER):
        together = rows[start : start + _WRITTEN_TOGETHER]
        yield from _written_together(together)


def _written_together(rows: list[Any]) -> Iterable[str | None]:
    if isinstance(rows[0], bytes):
        return repeat(None, len(rows))
    try:
        return jsontext.dumps_each(rows)
    except RecursionError:
        return repeat(None, len(rows))


def _parsed(given: Any, written: str | None) -> tuple[JsonObject, str]:
    """A row and its JSON, from a line of JSON or from a value that was parsed before."""
    if isinstance(given, bytes):
        if len(given) > _LONGEST_CHARS:
            # Parsing it would take as much again as all of the body may cost.
            raise _too_long(len(given), "bytes")
        try:
            row = jsontext.loads(given, "the line", one_line=True)
        except InvalidJson as error:
            raise ValidationError(error.message) from None
        text = given.decode().strip()
        if len(text) > _SHORT_CHARS:
            # Blanks between its parts count in no limit, and would lie in memory with it.
            text = _dumped(row)
    else:
        row, text = given, _dumped(given) if written is None else written
        if len(text) > _LONGEST_CHARS:
            raise _too_long(len(text), "characters")
    if not isinstance(row, dict):
        raise ValidationError("must be an object")
    return row, text


def _too_long(size: int, units: str) -> ValidationError:
    return ValidationError(f"has {size:,} {units} as JSON, at most {_LONGEST_CHARS:,} are allowed")


def _dumped(value: Any) -> str:
    try:
        return jsontext.dumps(value)
    except RecursionError:
        raise ValidationError("is nested too deeply") from None


def _check(row: JsonObject, is_short: bool) -> None:
    """Check the fields of a row, of which `is_short` says that no state in it is too long."""
    for name in ("id", "state"):
        if name not in row:
            raise ValidationError({name: ["is required"]})
    for name, value in row.items():
        if not (is_short and name == "state") and not _is_plain(name, value):
            _check_field(name, value)


def _count(row_id: str, numbers: dict[str, int], number: int) -> None:
    """Note the id of a row among those of the rows so far."""
    first = numbers.setdefault(row_id, number)
    if first != number:
        raise ValidationError({"id": [f"is the id of row {first} too"]})


def _is_plain(name: str, value: Any) -> bool:
    """Whether a value is one of those that most rows have, and certainly right.

    That is found out in a tenth of the time that the field takes, for 100,000 rows half a second.
    """
    if name == "tags":
        return isinstance(value, dict) and has_sound_tags(value)
    if not isinstance(value, str):
        return False
    if name == "state":
        return len(value) <= limits.STATE_CHARS
    if name == "id":
        return 0 < len(value) <= limits.JOB_ROW_ID_CHARS
    return name == "ref" and is_sound_ref(value)


def _check_field(name: str, value: Any) -> None:
    if name not in _FIELDS:
        allowed = ", ".join(_FIELDS)
        raise ValidationError(f"unknown field {quoted(name)}; allowed: {allowed}")
    try:
        _FIELDS[name].deserialize(value)
    except ValidationError as error:
        raise ValidationError({name: error.messages}) from None
