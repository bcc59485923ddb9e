"""What an error reply says, whatever its shape; `refusals` finds out what it means."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

# A longer Retry-After is ignored.
LONGEST_WAIT_S = 7 * 86_400.0

# The rest of a longer message is not read.
MESSAGE_CHARS = 4_000

_STATUS_OF_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "server_error": 500,
    "api_error": 500,
}

# A time since the epoch is smaller in seconds, and larger in milliseconds.
_MILLISECONDS_FROM = 1e11

# A smaller number counts seconds from now, a larger one is a time since the epoch.
_EPOCH_TIMES_FROM = 1e9

# Deeper levels of a validation report are not read.
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class ErrorText:
    """The parts of an error that providers fill in, each an empty string where missing.

    `reset` is an X-RateLimit-Reset that stands in the body. `structured` says that the body was an
    error in JSON.
    """

    status: int
    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""
    reset: object = None
    structured: bool = False


def read_error(status: int, payload: object) -> ErrorText:
    """The error in a decoded reply, whatever its shape; `payload` is None where it was not JSON."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return ErrorText(status)
    error = payload.get("error")
    if isinstance(error, dict):
        fields: Mapping[str, Any] = error
    else:
        fields = {"message": error, **payload} if isinstance(error, str) else payload
    message = _message(fields) or _text(error)
    return ErrorText(
        status,
        message=message,
        code=_text(fields.get("code")),
        type=_text(fields.get("type")) or _name(fields.get("status")),
        param=_text(fields.get("param")),
        reset=_reset_in(fields.get("metadata")),
        structured=bool(message) or isinstance(error, dict),
    )


def read_inner_error(payload: object) -> ErrorText:
    """The error in a reply of status 200: its code says which status it should have had."""
    error = read_error(400, payload)
    status = int(error.code) if re.fullmatch(r"[45][0-9][0-9]", error.code) else 400
    status = _STATUS_OF_CODES.get(error.code, _STATUS_OF_CODES.get(error.type, status))
    return replace(error, status=status)


def retry_after(headers: Mapping[str, str], reset: object, now: float) -> float | None:
    """The seconds that the provider says to wait, in one of three ways; None where it does not."""
    value = headers.get("Retry-After")
    wait_s = _seconds(value)
    if wait_s is None and isinstance(value, str):
        wait_s = _until_date(value, now)
    if wait_s is None:
        wait_s = _until_reset(headers.get("X-RateLimit-Reset") or reset, now)
    return None if wait_s is None or wait_s > LONGEST_WAIT_S else max(0.0, wait_s)


def _message(fields: Mapping[str, Any]) -> str:
    """Everything that the error says in words: its message, its report, and an inner error."""
    message = fields.get("message")
    parts = [_text(message) or _words(message), _words(fields.get("detail"))]
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        parts.append(_raw(metadata.get("raw")))
    return " ".join(filter(None, parts))[:MESSAGE_CHARS]


def _name(value: object) -> str:
    """A status by name, such as RESOURCE_EXHAUSTED; a number says nothing more."""
    return value if isinstance(value, str) and re.fullmatch(r"[A-Z_]{3,64}", value) else ""


def _raw(raw: object) -> str:
    """What the provider behind an aggregator said: text, JSON in a text, or JSON."""
    text = _text(raw)
    if text.lstrip().startswith(("{", "[")):
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return _words(raw)
    return text or _words(raw)


def _text(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return value[:MESSAGE_CHARS] if isinstance(value, str) else ""


def _words(value: object, depth: int = _DEPTH) -> str:
    """The words of a validation report such as [{"loc": ["body", "logprobs"], "msg": "..."}]."""
    if isinstance(value, list) and depth:
        return " ".join(_words(inner, depth - 1) for inner in value[:20])[:MESSAGE_CHARS]
    if isinstance(value, dict) and depth:
        inner = (value.get(name) for name in _REPORT_FIELDS)
        return " ".join(filter(None, (_words(one, depth - 1) for one in inner)))
    return _text(value)


_REPORT_FIELDS = ("error", "detail", "message", "loc", "param", "field", "msg", "code")


def _reset_in(metadata: object) -> object:
    headers = metadata.get("headers") if isinstance(metadata, dict) else None
    return headers.get("X-RateLimit-Reset") if isinstance(headers, dict) else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until_date(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _until_reset(value: object, now: float) -> float | None:
    number = _seconds(value)
    if number is None or number < _EPOCH_TIMES_FROM:
        return number
    return (number / 1000 if number >= _MILLISECONDS_FROM else number) - now
