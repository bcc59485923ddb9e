"""From an error reply to the `CallError` it means. Providers agree on little here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from svc.providers.bodies import KEPT
from svc.providers.failures import (
    CallError,
    Gone,
    NoLogprobs,
    ParameterRefused,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.quirks import REQUIRE_PARAMETERS
from svc.providers.redaction import Redactor, log_line

LONGEST_WAIT_S = 7 * 86_400.0  # a Retry-After beyond this is no answer
_BLAMES_PARAMETERS = (400, 404, 422)
_BLAMES_MODEL = (400, 403, 404, 410, 422)
_STATUS_OF_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "server_error": 500,
    "api_error": 500,
}
_TIMEOUT_STATUSES = (408, 409, 425)  # the provider's own hint that asking again may help
_MILLISECONDS_FROM = 1e11  # an instant in seconds is smaller, one in milliseconds larger
_INSTANTS_FROM = 1e9  # anything smaller counts from now
_GONE_CODES = frozenset(
    {
        "model_not_found",
        "model_decommissioned",
        "model_deprecated",
        "model_not_available",
        "model_not_active",
        "model_terms_required",
        "model_permission_blocked_org",
        "model_permission_blocked_project",
        "invalid_model",
        "unknown_model",
        "not_found_error",
    }
)
_GONE_WORDS = re.compile(
    r"\bmodels?\b.{0,120}("
    r"not exist|n.t exist|not found|n.t found|not a valid|unknown|decommissioned|retired|"
    r"no longer|deprecated|not available|unavailable|not have access|n.t have access)"
    r"|not a valid model|(unknown|invalid|no such) model|access to (the |this )?model"
    r"|no endpoints found for",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT_WORDS = re.compile(r"context.{0,3}(length|window|size)|too many tokens", re.IGNORECASE)
_SCHEMA_WORDS = re.compile(
    r"response.?format|json.?schema|structured.?outputs?|guided.?(json|decoding)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Said:
    """The parts of an error that providers fill in, each an empty string where missing."""

    status: int
    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""
    reset: object = None  # an X-RateLimit-Reset that stands in the body
    structured: bool = False  # the body was an error in JSON


@dataclass(frozen=True, slots=True)
class Asked:
    """What was sent, as far as a refusal may speak of it."""

    body: Mapping[str, Any]
    redactor: Redactor
    aggregator: bool = False

    def blamable(self) -> Iterator[str]:
        """The fields that a model may refuse, logprobs first: their names hold each other's."""
        fields = [name for name in self.body if name not in KEPT]
        return iter(sorted(fields, key=lambda name: "logprobs" not in name))


def read_error(status: int, payload: object) -> Said:
    """The error in a decoded reply, whatever its shape; `payload` is None where it was no JSON."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return Said(status)
    error = payload.get("error")
    if isinstance(error, dict):
        fields: Mapping[str, Any] = error
    else:
        fields = {"message": error, **payload} if isinstance(error, str) else payload
    message = _text(fields.get("message")) or _text(error) or _flat(fields.get("detail"))
    return Said(
        status,
        message=message,
        code=_text(fields.get("code")),
        type=_text(fields.get("type")),
        param=_text(fields.get("param")),
        reset=_reset_in(fields.get("metadata")),
        structured=bool(message) or isinstance(error, dict),
    )


def read_inner_error(payload: object) -> Said:
    """The error in a reply of status 200: its code says which status it should have had."""
    said = read_error(400, payload)
    code = int(said.code) if re.fullmatch(r"[45][0-9][0-9]", said.code) else 400
    code = _STATUS_OF_CODES.get(said.code, _STATUS_OF_CODES.get(said.type, code))
    return replace(said, status=code)


def failure(said: Said, headers: Mapping[str, str], asked: Asked, now: float) -> CallError:
    """The `CallError` that an error reply means; `now` is in seconds since the epoch."""
    facts = {"code": said.code, "type": said.type}
    facts = {name: asked.redactor.code(value) for name, value in facts.items()}
    detail = log_line(said.status, facts, asked.redactor.message(said.message))
    if said.status == 429:
        return Throttled(detail, retry_after(headers, said.reset, now))
    if said.status >= 500 or said.status in _TIMEOUT_STATUSES:
        return ServerTrouble(detail, retry_after(headers, said.reset, now))
    parameter = _refused_parameter(said, asked)
    if parameter is not None and "logprobs" in parameter:
        return NoLogprobs(detail)
    if parameter is not None:
        return ParameterRefused(parameter, detail)
    return Gone(detail) if _is_gone(said, asked) else Refused(detail)


def retry_after(headers: Mapping[str, str], reset: object, now: float) -> float | None:
    """Seconds to wait as the provider says, in one of the three ways they do, else None."""
    said = headers.get("Retry-After")
    wait = _seconds(said)
    if wait is None and isinstance(said, str):
        wait = _until_date(said, now)
    if wait is None:
        wait = _until_reset(headers.get("X-RateLimit-Reset") or reset, now)
    return None if wait is None or wait > LONGEST_WAIT_S else max(0.0, wait)


def _refused_parameter(said: Said, asked: Asked) -> str | None:
    """The one field of the body that the error blames."""
    if said.status not in _BLAMES_PARAMETERS or said.code == "context_length_exceeded":
        return None
    if _no_endpoint(said, asked):
        return _no_endpoint_parameter(said, asked)
    blamed = re.split(r"[.\[]", said.param)[0]
    for name in asked.blamable():
        if name == blamed:
            return name
    if blamed or _CONTEXT_WORDS.search(said.message):
        return None
    for name in asked.blamable():
        if _says(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", said, asked):
            return name
    if "response_format" in asked.body and _says(_SCHEMA_WORDS, said, asked):
        return "response_format"
    return None


def _says(pattern: str | re.Pattern[str], said: Said, asked: Asked) -> bool:
    """Whether the message says it in words that are no echo of the caller's.

    What is learned of a model holds for everybody, so no caller's text may teach it.
    """
    found = re.search(pattern, said.message)
    return found is not None and not asked.redactor.echoes(found[0])


def _no_endpoint(said: Said, asked: Asked) -> bool:
    return asked.aggregator and said.message.lower().startswith("no endpoints found")


def _no_endpoint_parameter(said: Said, asked: Asked) -> str | None:
    """The aggregator's 404s: none that takes every parameter, unlike none of the right policy."""
    policy = asked.body.get("provider", {})
    if "requested parameters" in said.message.lower() and REQUIRE_PARAMETERS in policy:
        return REQUIRE_PARAMETERS
    return None


def _is_gone(said: Said, asked: Asked) -> bool:
    if said.status not in _BLAMES_MODEL:
        return False
    if {said.code, said.type} & _GONE_CODES or said.param == "model":
        return True
    if _no_endpoint(said, asked):
        return said.message.lower().startswith("no endpoints found for")
    if _GONE_WORDS.search(said.message):
        return True
    return said.status in (404, 410) and said.structured


def _text(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return value[:4_000] if isinstance(value, str) else ""


def _flat(value: object, depth: int = 4) -> str:
    """The words of a validation report such as [{"loc": ["body", "logprobs"], "msg": "..."}]."""
    if isinstance(value, list) and depth:
        return " ".join(_flat(inner, depth - 1) for inner in value[:20])[:4_000]
    if isinstance(value, dict) and depth:
        return " ".join(_flat(value.get(name), depth - 1) for name in ("loc", "msg"))
    return _text(value)


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
    if number is None or number < _INSTANTS_FROM:
        return number
    return (number / 1000 if number >= _MILLISECONDS_FROM else number) - now
