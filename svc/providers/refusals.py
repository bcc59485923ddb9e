"""From an error reply to the `ProviderError` it means. Providers agree on little here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from svc.providers import bounds
from svc.providers.error_text import ErrorText, retry_after
from svc.providers.failures import (
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.redaction import Redactor, log_line
from svc.providers.traits import FIELDS, OBJECT_SCHEMA, REASONING_OFF, REQUIRE_PARAMETERS

# Never left out: without its policy a strict request would reach providers that store prompts.
KEPT = frozenset({"model", "messages", "provider"})

# The two names of the output limit.
LIMITS = ("max_tokens", "max_completion_tokens")

# How far a field's name and the word that refuses it may stand apart.
_NEAR_CHARS = 60

# So many places of a message that name a field are looked at.
_MENTIONS = 32

_BLAMES_PARAMETERS = (400, 403, 404, 422)
_BLAMES_MODEL = (400, 403, 404, 410, 422)

# By these a provider says that asking again may help.
_TIMEOUT_STATUSES = (408, 409, 425)

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
# Between a model and what is said of it stands no other model, so that each letter is read once.
_GONE_WORDS = re.compile(
    r"\bmodels?\b(?:(?!\bmodels?\b).){0,120}("
    r"not exist|n.t exist|not found|n.t found|not a valid|unknown|decommissioned|retired|"
    r"no longer|deprecated|not available|unavailable|not have access|n.t have access)"
    r"|not a valid model|(unknown|invalid|no such) model|access to (the |this )?model"
    r"|no endpoints found for",
    re.IGNORECASE | re.DOTALL,
)
_CREDIT_CODES = frozenset({"insufficient_quota", "insufficient_credits", "billing_not_active"})
_CREDIT_WORDS = re.compile(
    r"exceeded your current quota|insufficient.{0,10}(quota|credit|balance|funds)"
    r"|credit balance is too low|out of credits?",
    re.IGNORECASE,
)
_CONTEXT_WORDS = re.compile(
    r"context.{0,3}(length|window|size)|too many (input )?tokens|prompt is too long"
    r"|(input|prompt) token count|exceeds the (model.s )?(maximum|max) (number of |input )?tokens",
    re.IGNORECASE,
)
# The message of a limit by minute or day has one of these, even where it speaks of quotas too.
_PASSING_WORDS = re.compile(
    r"resource_exhausted|rate.?limit|(try|retry) (again )?in\b|per[ -](minute|day|second)",
    re.IGNORECASE,
)
# A reasoning model that used up its output limit before it answered.
_CUT_WORDS = re.compile(r"(max_tokens|output) (or .{0,20})?limit was reached", re.IGNORECASE)
_SCHEMA_WORDS = re.compile(
    r"response.?format|json.?(schema|object|mode|output)|structured.?outputs?"
    r"|guided.?(json|decoding)|response.?schema",
    re.IGNORECASE,
)
_LOGPROBS_WORDS = re.compile(r"log.?probs|top_n_tokens|logits_all", re.IGNORECASE)
_MANDATORY_WORDS = re.compile(r"reasoning.{0,40}(mandatory|required|cannot be)", re.IGNORECASE)
# What a server says of a field that it does not take, in an error that it calls its own.
_VALIDATION_WORDS = re.compile(
    r"validation error|not (supported|permitted|allowed|implemented)|unsupported|invalid|should be"
    r"|must be|unexpected (field|keyword|argument|value)|unknown (field|argument|parameter)"
    r"|unrecognized|extra inputs|requires?\b|literal_error",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SentCall:
    """The parts of a call that a refusal may speak of."""

    body: Mapping[str, Any]
    redactor: Redactor
    aggregator: bool = False

    @property
    def logprobs(self) -> bool:
        return "logprobs" in self.body

    @property
    def formatted(self) -> bool:
        return "response_format" in self.body

    def blamable(self) -> Iterator[str]:
        """The fields that a model may refuse, longer names first: they contain the shorter."""
        fields = [name for name in self.body if name not in KEPT]
        return iter(sorted(fields, key=lambda name: -len(name)))

    def limit(self) -> tuple[str, int]:
        """The name of the output limit that was sent, and its value; 0 where none was."""
        for name in LIMITS:
            if name in self.body:
                return name, self.body[name]
        return LIMITS[0], 0


def failure(
    error: ErrorText, headers: Mapping[str, str], call: SentCall, now: float
) -> ProviderError:
    """The `ProviderError` that an error reply means; `now` is in seconds since the epoch."""
    facts = {"code": error.code, "type": error.type}
    facts = {name: call.redactor.code(value) for name, value in facts.items()}
    detail = log_line(error.status, facts, call.redactor.message(error.message))
    if error.status == 402 or _no_credit(error, headers, call):
        return NoCredit(detail)
    if error.status == 429 and bounds.is_above_every_rate(error.message):
        # OpenAI answers so a call that is larger than its limit, which no waiting helps.
        return Refused(detail)
    if error.status == 429:
        return Throttled(detail, retry_after(headers, error.reset, now))
    if error.status == 401:
        return KeyRefused(detail)
    if _is_trouble(error) and not _blames_a_field(error, call):
        return ServerTrouble(detail, retry_after(headers, error.reset, now))
    return _refusal(error, call, detail)


def _refusal(error: ErrorText, call: SentCall, detail: str) -> ProviderError:
    """What a reply means where the same call would be refused again."""
    if error.status in (400, 422) and _says(_CUT_WORDS, error, call):
        return Cut(detail)
    bounded = _bounded(error, call, detail)
    if bounded is not None:
        return bounded
    field = _refused_field(error, call)
    if field is not None:
        return _without(field, call, detail)
    if (field := _echoed_field(error, call)) is not None:
        return ParameterRefused(field, detail, lasting=False)
    if _is_gone(error, call):
        return Gone(detail)
    if error.status == 413 or _is_too_long(error):
        # In any other way of asking the prompt would be even longer.
        return Refused(detail)
    # Whatever the message says, the call may be accepted without log-probabilities or the format.
    if call.logprobs and (error.status < 500 or error.status == 501):
        return NoLogprobs(detail)
    if call.formatted and error.status in (400, 422, 501):
        return FormatRefused(detail)
    return Refused(detail)


def _is_too_long(error: ErrorText) -> bool:
    return error.code == "context_length_exceeded" or bool(_CONTEXT_WORDS.search(error.message))


def _without(field: str, call: SentCall, detail: str) -> ProviderError:
    """What the refusal of one field means."""
    if "logprobs" in field:
        return NoLogprobs(detail)
    if field == "response_format":
        return FormatRefused(detail)
    if field == "reasoning" and call.body["reasoning"].get("effort") == "none":
        return ParameterRefused(REASONING_OFF, detail)
    if field not in FIELDS:
        return Refused(detail)
    return ParameterRefused(field, detail)


def _is_trouble(error: ErrorText) -> bool:
    """Whether asking again may help, which it does not where a function is missing (501)."""
    return (error.status >= 500 and error.status != 501) or error.status in _TIMEOUT_STATUSES


def _no_credit(error: ErrorText, headers: Mapping[str, str], call: SentCall) -> bool:
    """Whether the account has no credit left; unlike a limit, this does not pass by waiting."""
    if error.status not in (400, 403, 429):
        return False
    if {error.code, error.type} & _CREDIT_CODES:
        return True
    passing = "Retry-After" in headers or _PASSING_WORDS.search(
        f"{error.code} {error.type} {error.message}"
    )
    return not passing and _says(_CREDIT_WORDS, error, call)


def _blames_a_field(error: ErrorText, call: SentCall) -> bool:
    """Whether an error of status 500 is a validation error that names a field of the body.

    The field and the word of refusal have to stand close together: an outage may list all fields.
    """
    if error.status != 500:
        return False
    names = "|".join(re.escape(name) for name in call.blamable())
    names = f"{names}|{_LOGPROBS_WORDS.pattern}" if call.logprobs else names
    for mention in _mentions(names, error):
        start, end = max(0, mention.start() - _NEAR_CHARS), mention.end() + _NEAR_CHARS
        near = error.message[start:end]
        if _VALIDATION_WORDS.search(near) or bounds.TOO_LARGE.search(near):
            return _refused_field(error, call) is not None
    return False


def _refused_field(error: ErrorText, call: SentCall) -> str | None:
    """The one field of the body that the error blames."""
    blames = error.status in _BLAMES_PARAMETERS or error.status >= 500
    if not blames or error.code == "context_length_exceeded":
        return None
    if _no_endpoint(error, call):
        return _no_endpoint_field(error, call)
    named = _named(error.param, call)
    if named is not None or error.param or _CONTEXT_WORDS.search(error.message):
        return named
    for name in call.blamable():
        if _says(_mention(re.escape(name)), error, call):
            return _named_part(name, error, call)
    if call.logprobs and _says(_LOGPROBS_WORDS, error, call):
        return "logprobs"
    if call.formatted and _says(_SCHEMA_WORDS, error, call):
        return "response_format"
    if "reasoning" in call.body and _says(_MANDATORY_WORDS, error, call):
        return "reasoning"
    return None


def _echoed_field(error: ErrorText, call: SentCall) -> str | None:
    """A field whose name the caller used too; it may be left out of this call, but of no other."""
    if error.status not in (400, 422):
        return None
    for name in call.blamable():
        for mention in _mentions(re.escape(name), error) if name in FIELDS else ():
            near = error.message[mention.start() : mention.end() + _NEAR_CHARS]
            if _VALIDATION_WORDS.search(near):
                return name
    return None


def _mention(names: str) -> str:
    """A pattern that finds a field's name in words or in a path, but not in a model's name."""
    return rf"(?:(?<![\w/-])|(?<=body/)|(?<=#/)|(?<=\s/)|(?<=^/))(?:{names})(?![\w-])"


def _mentions(names: str, error: ErrorText) -> Iterator[re.Match[str]]:
    """The first places of a message that name a field; around each it is looked at on its own."""
    return islice(re.finditer(_mention(names), error.message, re.IGNORECASE), _MENTIONS)


def _named(param: str, call: SentCall) -> str | None:
    """The field that `param` names, such as `response_format.schema` or `body -> logprobs`."""
    path = [part for part in re.split(r"[^A-Za-z0-9_]+", param) if part and part != "body"]
    for name in call.blamable():
        if path and path[0].casefold() == name:
            return OBJECT_SCHEMA if _is_object_schema(path, call) else name
    return None


def _named_part(name: str, error: ErrorText, call: SentCall) -> str:
    """The field itself, or the schema inside it where that alone is blamed."""
    if name == "response_format":
        schema = re.search(r"response_format\W+(?:body\W+)?schema\b", error.message, re.IGNORECASE)
        if schema and _is_object_schema([name, "schema"], call):
            return OBJECT_SCHEMA
    return name


def _is_object_schema(path: list[str], call: SentCall) -> bool:
    """Whether the schema beside the type `json_object` is meant."""
    sent = call.body.get("response_format", {})
    return path[:2] == ["response_format", "schema"] and "schema" in sent


def _bounded(error: ErrorText, call: SentCall, detail: str) -> ParameterBounded | None:
    """The bound of a number that was too large or too small, where the error states one."""
    if not (error.status in _BLAMES_PARAMETERS or error.status >= 500):
        return None
    sent = call.body.get("top_logprobs", 0)
    if _says(_LOGPROBS_WORDS, error, call) or error.param == "top_logprobs":
        fewer = bounds.fewer_alternatives(error.message, sent)
        if fewer is not None:
            return ParameterBounded("top_logprobs", fewer, detail)
    name, limit = call.limit()
    left = bounds.left_of_context(error.message)
    if left is not None:
        return ParameterBounded(name, left, detail, lasting=False) if left < limit else None
    if error.param != name and not _says(bounds.output_limit_words(name), error, call):
        return None
    allowed = bounds.output_limit(error.message, limit)
    if allowed is None:
        return None
    bound, upper = allowed
    lasting = not bounds.is_of_the_prompt(error.message)
    return ParameterBounded(name, bound, detail, upper=upper, lasting=lasting)


def _says(pattern: str | re.Pattern[str], error: ErrorText, call: SentCall) -> bool:
    """Whether the message matches in words that are not an echo of the caller's.

    What is learned of a model applies to every caller, so it must not come from one caller's text.
    """
    if isinstance(pattern, str):
        pattern = re.compile(pattern, re.IGNORECASE)
    match = pattern.search(error.message)
    return match is not None and not call.redactor.echoes(match[0])


def _no_endpoint(error: ErrorText, call: SentCall) -> bool:
    return call.aggregator and error.message.lower().startswith(
        ("no endpoints found", "no endpoints available", "no allowed providers")
    )


def _no_endpoint_field(error: ErrorText, call: SentCall) -> str | None:
    """What an aggregator's 404 blames: that no provider takes every parameter, or nothing.

    It answers with the same status when no provider has the right policy.
    """
    policy = call.body.get("provider", {})
    if "requested parameters" in error.message.lower() and REQUIRE_PARAMETERS in policy:
        return REQUIRE_PARAMETERS
    return None


def _is_gone(error: ErrorText, call: SentCall) -> bool:
    if error.status not in _BLAMES_MODEL:
        return False
    if {error.code, error.type} & _GONE_CODES or error.param == "model":
        return True
    if _no_endpoint(error, call):
        return error.message.lower().startswith("no endpoints found for")
    if _GONE_WORDS.search(error.message):
        return True
    return error.status in (404, 410) and error.structured
