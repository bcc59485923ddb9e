"""From an error reply to the `ProviderError` it means. Providers agree on little here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
LIMITS = ("max_tokens", "max_completion_tokens")  # the two names of the output limit
_NEAR = 60  # characters between a field's name and the word that refuses it
_BLAMES_PARAMETERS = (400, 403, 404, 422)
_BLAMES_MODEL = (400, 403, 404, 410, 422)
_TIMEOUT_STATUSES = (408, 409, 425)  # the provider's own hint that asking again may help
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
# What a limit of a minute or a day says, whatever else it says of quotas.
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
    """What was sent, as far as a refusal may speak of it."""

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
        """The fields that a model may refuse, the longer names first: they hold the shorter."""
        fields = [name for name in self.body if name not in KEPT]
        return iter(sorted(fields, key=lambda name: -len(name)))

    def limit(self) -> tuple[str, int]:
        """The name of the output limit that was sent, and its value; 0 where none was."""
        for name in LIMITS:
            if name in self.body:
                return name, self.body[name]
        return LIMITS[0], 0


def failure(
    said: ErrorText, headers: Mapping[str, str], asked: SentCall, now: float
) -> ProviderError:
    """The `ProviderError` that an error reply means; `now` is in seconds since the epoch."""
    facts = {"code": said.code, "type": said.type}
    facts = {name: asked.redactor.code(value) for name, value in facts.items()}
    detail = log_line(said.status, facts, asked.redactor.message(said.message))
    if said.status == 402 or _no_credit(said, headers, asked):
        return NoCredit(detail)
    if said.status == 429:
        return Throttled(detail, retry_after(headers, said.reset, now))
    if said.status == 401:
        return KeyRefused(detail)
    if _is_trouble(said) and not _blames_a_field(said, asked):
        return ServerTrouble(detail, retry_after(headers, said.reset, now))
    return _refusal(said, asked, detail)


def _refusal(said: ErrorText, asked: SentCall, detail: str) -> ProviderError:
    """What a reply means that refuses this call, and would refuse it again."""
    if said.status in (400, 422) and _says(_CUT_WORDS, said, asked):
        return Cut(detail)
    bounded = _bounded(said, asked, detail)
    if bounded is not None:
        return bounded
    field = _refused_field(said, asked)
    if field is not None:
        return _without(field, asked, detail)
    if (field := _echoed_field(said, asked)) is not None:
        return ParameterRefused(field, detail, lasting=False)
    if _is_gone(said, asked):
        return Gone(detail)
    if said.status == 413 or _is_too_long(said):
        return Refused(detail)  # in any other way the prompt would be longer
    if asked.logprobs and (said.status < 500 or said.status == 501):
        return NoLogprobs(detail)  # whatever it says: without log-probabilities it may be taken
    if asked.formatted and said.status in (400, 422, 501):
        return FormatRefused(detail)  # and so may this without the format
    return Refused(detail)


def _is_too_long(said: ErrorText) -> bool:
    return said.code == "context_length_exceeded" or bool(_CONTEXT_WORDS.search(said.message))


def _without(field: str, asked: SentCall, detail: str) -> ProviderError:
    """What it means that one field is refused."""
    if "logprobs" in field:
        return NoLogprobs(detail)
    if field == "response_format":
        return FormatRefused(detail)
    if field == "reasoning" and asked.body["reasoning"].get("effort") == "none":
        return ParameterRefused(REASONING_OFF, detail)
    if field not in FIELDS:
        return Refused(detail)
    return ParameterRefused(field, detail)


def _is_trouble(said: ErrorText) -> bool:
    """Whether asking again may help: not where the server says that it has no such function."""
    return (said.status >= 500 and said.status != 501) or said.status in _TIMEOUT_STATUSES


def _no_credit(said: ErrorText, headers: Mapping[str, str], asked: SentCall) -> bool:
    """Whether the account is spent, which unlike a limit does not pass by waiting."""
    if said.status not in (400, 403, 429):
        return False
    if {said.code, said.type} & _CREDIT_CODES:
        return True
    passing = "Retry-After" in headers or _PASSING_WORDS.search(
        f"{said.code} {said.type} {said.message}"
    )
    return not passing and _says(_CREDIT_WORDS, said, asked)


def _blames_a_field(said: ErrorText, asked: SentCall) -> bool:
    """Whether an error of status 500 is a validation error that names a field of the body.

    The field and the word of refusal have to stand close together: an outage may list all fields.
    """
    if said.status != 500:
        return False
    names = "|".join(re.escape(name) for name in asked.blamable())
    names = f"{names}|{_LOGPROBS_WORDS.pattern}" if asked.logprobs else names
    for found in _mentions(names, said):
        near = said.message[max(0, found.start() - _NEAR) : found.end() + _NEAR]
        if _VALIDATION_WORDS.search(near) or bounds.TOO_LARGE.search(near):
            return _refused_field(said, asked) is not None
    return False


def _refused_field(said: ErrorText, asked: SentCall) -> str | None:
    """The one field of the body that the error blames."""
    blames = said.status in _BLAMES_PARAMETERS or said.status >= 500
    if not blames or said.code == "context_length_exceeded":
        return None
    if _no_endpoint(said, asked):
        return _no_endpoint_field(said, asked)
    named = _named(said.param, asked)
    if named is not None or said.param or _CONTEXT_WORDS.search(said.message):
        return named
    for name in asked.blamable():
        if _says(_mention(re.escape(name)), said, asked):
            return _named_part(name, said, asked)
    if asked.logprobs and _says(_LOGPROBS_WORDS, said, asked):
        return "logprobs"
    if asked.formatted and _says(_SCHEMA_WORDS, said, asked):
        return "response_format"
    if "reasoning" in asked.body and _says(_MANDATORY_WORDS, said, asked):
        return "reasoning"
    return None


def _echoed_field(said: ErrorText, asked: SentCall) -> str | None:
    """A field whose name the caller used too: it may be left out of this call, and no other."""
    if said.status not in (400, 422):
        return None
    for name in asked.blamable():
        for found in _mentions(re.escape(name), said) if name in FIELDS else ():
            if _VALIDATION_WORDS.search(said.message[found.start() : found.end() + _NEAR]):
                return name
    return None


def _mention(names: str) -> str:
    """A pattern of a field's name as such: in a path of the body, but in no model's name."""
    return rf"(?:(?<![\w/-])|(?<=body/)|(?<=#/)|(?<=\s/)|(?<=^/))(?:{names})(?![\w-])"


def _mentions(names: str, said: ErrorText) -> Iterator[re.Match[str]]:
    return re.finditer(_mention(names), said.message, re.IGNORECASE)


def _named(param: str, asked: SentCall) -> str | None:
    """The field that `param` names, such as `response_format.schema` or `body -> logprobs`."""
    path = [part for part in re.split(r"[^A-Za-z0-9_]+", param) if part and part != "body"]
    for name in asked.blamable():
        if path and path[0].casefold() == name:
            return OBJECT_SCHEMA if _is_object_schema(path, asked) else name
    return None


def _named_part(name: str, said: ErrorText, asked: SentCall) -> str:
    """The field itself, or the schema inside it where that alone is blamed."""
    if name == "response_format":
        found = re.search(r"response_format\W+(?:body\W+)?schema\b", said.message, re.IGNORECASE)
        if found and _is_object_schema([name, "schema"], asked):
            return OBJECT_SCHEMA
    return name


def _is_object_schema(path: list[str], asked: SentCall) -> bool:
    """Whether the schema beside the type `json_object` is meant."""
    sent = asked.body.get("response_format", {})
    return path[:2] == ["response_format", "schema"] and "schema" in sent


def _bounded(said: ErrorText, asked: SentCall, detail: str) -> ParameterBounded | None:
    """The bound of a number that was too large or too small, where the error tells of one."""
    if not (said.status in _BLAMES_PARAMETERS or said.status >= 500):
        return None
    sent = asked.body.get("top_logprobs", 0)
    if _says(_LOGPROBS_WORDS, said, asked) or said.param == "top_logprobs":
        fewer = bounds.fewer_alternatives(said.message, sent)
        if fewer is not None:
            return ParameterBounded("top_logprobs", fewer, detail)
    name, limit = asked.limit()
    left = bounds.left_of_context(said.message)
    if left is not None:
        return ParameterBounded(name, left, detail, lasting=False) if left < limit else None
    if said.param != name and not _says(bounds.output_limit_words(name), said, asked):
        return None
    found = bounds.output_limit(said.message, limit)
    if found is None:
        return None
    bound, upper = found
    return ParameterBounded(name, bound, detail, upper=upper)


def _says(pattern: str | re.Pattern[str], said: ErrorText, asked: SentCall) -> bool:
    """Whether the message says it in words that are no echo of the caller's.

    What is learned of a model holds for everybody, so no caller's text may teach it.
    """
    if isinstance(pattern, str):
        pattern = re.compile(pattern, re.IGNORECASE)
    found = pattern.search(said.message)
    return found is not None and not asked.redactor.echoes(found[0])


def _no_endpoint(said: ErrorText, asked: SentCall) -> bool:
    return asked.aggregator and said.message.lower().startswith(
        ("no endpoints found", "no endpoints available", "no allowed providers")
    )


def _no_endpoint_field(said: ErrorText, asked: SentCall) -> str | None:
    """The aggregator's 404s: none that takes every parameter, unlike none of the right policy."""
    policy = asked.body.get("provider", {})
    if "requested parameters" in said.message.lower() and REQUIRE_PARAMETERS in policy:
        return REQUIRE_PARAMETERS
    return None


def _is_gone(said: ErrorText, asked: SentCall) -> bool:
    if said.status not in _BLAMES_MODEL:
        return False
    if {said.code, said.type} & _GONE_CODES or said.param == "model":
        return True
    if _no_endpoint(said, asked):
        return said.message.lower().startswith("no endpoints found for")
    if _GONE_WORDS.search(said.message):
        return True
    return said.status in (404, 410) and said.structured
