"""From the bytes of a reply to a completion, or to the `ProviderError` it means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, TypeGuard

from svc import limits
from svc.jsontext import INT_DIGITS, has_long_numbers, has_more_parts, near_float
from svc.providers.error_text import read_error, read_inner_error
from svc.providers.failures import BadReply, Cut, ProviderError, UnusableLogprobs, Withheld
from svc.providers.refusals import SentCall, failure
from svc.providers.thought import without_thought
from svc.usage import NO_DETAILS, StatedUsage, TokenDetails

# Servers send this logprob or a lower one for a probability that they do not have.
PLACEHOLDER = -9999.0

# No single call uses more tokens or costs more; a larger number is wrong and is ignored.
MOST_TOKENS = 10_000_000
MOST_DOLLARS = 1_000.0

# What the two counts of tokens are called in the `usage` of a chat completion.
CHAT_COUNTS = ("prompt_tokens", "completion_tokens")

# The longest name of a model that is kept, and the longest fingerprint.
NAME_CHARS = 200

# How far above 1 rounding may push the sum of the alternatives' probabilities.
_SUM_SLACK = 0.01

# A new line has one character in a text, and up to so many in the tokens that spell it: `<0x0A>`.
# Tokens may spell so many more that are not in the text, such as the mark of its end.
_SPELLED, _SPELLED_MORE = 8, 64

# The bytes of memory of a token beside its text, and of an alternative.
_TOKEN_BYTES, _PAIR_BYTES = 160, 88


def parsed(data: bytes) -> Any:
    """The JSON of a reply whose request sets no bound on its parts. Raises `BadReply`."""
    if has_more_parts(data, limits.REPLY_PARTS):
        raise BadReply("the reply has too many members and elements")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadReply("the reply is no JSON") from None


def _whole(text: str) -> int | None:
    # The time to convert a whole number grows with the square of its digits.
    return int(text) if len(text) <= INT_DIGITS else None


# NaN and Infinity are no JSON, but servers send them: they read as null.
_PLAIN = json.JSONDecoder(parse_constant=lambda _: None)
_LONG_NUMBERS = json.JSONDecoder(
    parse_float=near_float, parse_int=_whole, parse_constant=lambda _: None
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply, read to its end and decompressed; `headers` ignore case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the text, and the tokens that could have stood in its place.

    `logprob` is the natural logarithm, at most 0. Each of the `alternatives` is a text and its
    logprob, in the provider's order.
    """

    text: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...]

    @property
    def tells(self) -> bool:
        """Whether it says anything about the probabilities of other tokens."""
        return len(self.alternatives) > 1 or (self.logprob < 0 and len(self.alternatives) == 1)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered.

    `tokens` is None unless log-probabilities were requested. `reported_cost` is in dollars, None
    where the provider does not report it. `cut` says that the text ran into the output limit.
    `decided` is the answer of a decision server: for each question, the probability of each label
    by its position. `served_by` is what the provider calls its model, empty where it said nothing.
    `details` say which of the tokens were cached or thought.
    """

    text: str
    tokens: tuple[Token, ...] | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    reported_cost: float | None = None
    cut: bool = False
    decided: tuple[Mapping[int, float], ...] = ()
    served_by: str = ""
    details: TokenDetails = NO_DETAILS

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of memory it takes."""
        return getsizeof(self.text) + sum(
            _TOKEN_BYTES
            + getsizeof(token.text)
            + sum([_PAIR_BYTES + getsizeof(text) for text, _ in token.alternatives])
            for token in self.tokens or ()
        )


def decoded(body: bytes) -> Any:
    """The JSON value of a reply, or None where there is none."""
    decoder = _LONG_NUMBERS if has_long_numbers(body) else _PLAIN
    try:
        return decoder.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def check_payload(payload: Any, reply: Reply, call: SentCall, now: float) -> None:
    """Raise the `ProviderError` that a reply with this decoded body means, if it is an error.

    `now` is in seconds since the epoch. Nothing else is raised, whatever the reply is.
    """
    _check_error(reply, payload, call, now)
    error = _first_choice(payload).get("error")
    if error:
        raise failure(read_inner_error({"error": error}), reply.headers, call, now)


def note_usage(error: ProviderError, payload: Any, counts: tuple[str, str]) -> None:
    """Keep in an error what its reply's decoded body says that the call used.

    A provider that states any may charge it. `counts` are the names of both counts of tokens.
    """
    first = _first(payload)
    usage = first.get("usage") if isinstance(first, dict) else None
    error.may_be_charged |= bool(usage)
    error.usage = read_usage(usage, counts)


def read_chat(payload: Any, logprobs: bool, most_tokens: int) -> Completion:
    """The completion in a chat reply's decoded body; `logprobs` says that they were requested.

    It was allowed `most_tokens`; what a server sends far beyond that is not looked at.

    Raises a `ProviderError` for everything else.
    """
    choice = _first_choice(payload)
    if not choice:
        raise BadReply("200: no completion in the reply")
    text = _content(choice)
    tokens = None
    if logprobs:
        tokens = _needed(text, _tokens(choice.get("logprobs"), most_tokens))
    usage = payload.get("usage")
    used = read_usage(usage, CHAT_COUNTS)
    cut = choice.get("finish_reason") == "length"
    served_by = read_model(payload)
    details = read_details(usage, "prompt_tokens_details", "completion_tokens_details")
    return Completion(text, tokens, *used, cut, served_by=served_by, details=details)


def read_usage(usage: Any, counts: tuple[str, str]) -> StatedUsage:
    """What a `usage` object states; `counts` are its names of input and output tokens.

    Both counts are 0 where one is there that cannot be right, and one that is missing is 0: a
    budget then counts what the call may cost at most, and not its other half alone. Some providers
    count tokens of thought in the total alone.
    """
    usage = usage if isinstance(usage, dict) else {}
    told, cost = [usage.get(name) for name in counts], _cost(usage)
    if any(one is not None and not _is_count(one) for one in told):
        return StatedUsage(reported_cost=cost)
    tokens_in, tokens_out = map(_count, told)
    beyond = _count(usage.get("total_tokens")) - tokens_in if tokens_in else 0
    return StatedUsage(tokens_in, max(tokens_out, beyond), cost)


def _cost(usage: Mapping[str, Any]) -> float | None:
    """The dollars that a `usage` object states, with those for the caller's own key upstream."""
    cost, details = _dollars(usage.get("cost")), usage.get("cost_details")
    if cost is None or usage.get("is_byok") is not True or not isinstance(details, dict):
        return cost
    return cost + (_dollars(details.get("upstream_inference_cost")) or 0.0)


def read_details(usage: Any, input_name: str, output_name: str) -> TokenDetails:
    """The details of a `usage` object; 0 for a count that is missing or wrong."""
    usage = usage if isinstance(usage, dict) else {}
    places = usage.get(input_name), usage.get(output_name)
    of_input, of_output = (one if isinstance(one, dict) else {} for one in places)
    return TokenDetails(
        _count(of_input.get("cached_tokens")),
        _count(of_input.get("cache_write_tokens")),
        _count(of_output.get("reasoning_tokens")),
    )


def read_model(payload: Any) -> str:
    """The `model` and the `system_fingerprint` of a reply; empty without either.

    One that is not at most 200 visible characters is left out.
    """
    model, fingerprint = _name(payload.get("model")), _name(payload.get("system_fingerprint"))
    return f"{model} {fingerprint}" if model and fingerprint else model or fingerprint


def read_json(reply: Reply, call: SentCall, now: float) -> Any:
    """The decoded body of a reply to what is no call of a model.

    Raises a `ProviderError` for an error.
    """
    payload = decoded(reply.body)
    _check_error(reply, payload, call, now)
    return payload


def read_models(reply: Reply, call: SentCall, now: float) -> list[str]:
    """The ids in a reply of `/models`; raises a `ProviderError` for any other reply."""
    payload = read_json(reply, call, now)
    listed = payload
    if isinstance(payload, dict):
        listed = payload.get("data", payload.get("models"))
    if not isinstance(listed, list):
        raise BadReply(f"{reply.status}: no list of models")
    names = (item.get("id") if isinstance(item, dict) else item for item in listed)
    return [name for name in names if isinstance(name, str)]


def _check_error(reply: Reply, payload: Any, call: SentCall, now: float) -> None:
    first = _first(payload)
    if not 200 <= reply.status < 300:
        raise failure(read_error(reply.status, payload), reply.headers, call, now)
    if isinstance(first, dict) and first.get("error"):
        raise failure(read_inner_error(first), reply.headers, call, now)


def _first(payload: Any) -> Any:
    """What a reply says: some servers put an error into a list."""
    return payload[0] if isinstance(payload, list) and payload else payload


def _first_choice(payload: Any) -> Mapping[str, Any]:
    """The first choice of a completion, empty where there is none."""
    choices = payload.get("choices") if isinstance(payload, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _content(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if choice.get("finish_reason") == "content_filter":
        raise Withheld("200: withheld by a content filter")
    if not isinstance(content, str) or not content.strip():
        if choice.get("finish_reason") == "length":
            raise Cut("200: the output limit was used up before any text")
        raise BadReply("200: no text in the completion")
    return _clean(content[: limits.REPLY_TEXT_CHARS])


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def _clean(text: str) -> str:
    """The text without lone surrogates, which nothing after this could encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _tokens(logprobs: Any, most_tokens: int) -> tuple[Token, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not content:
        raise UnusableLogprobs("200: no log-probabilities in the reply")
    read = content[: 2 * most_tokens + limits.TOKENS_BEYOND]
    tokens = tuple([_token(item) for item in read])
    if sum(len(token.text) for token in tokens) > limits.REPLY_TEXT_CHARS:
        raise BadReply("200: log-probabilities of a text that is far longer than labels")
    if not tokens[0].tells and not any(token.tells for token in tokens):
        raise UnusableLogprobs("200: log-probabilities that say nothing")
    return tokens


def _needed(text: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens, without the alternatives of those that can be no label: blanks, and thought.

    Thought may stand before the answer in the text, or in the tokens alone. Blanks count for
    nothing, since some servers take those off the ends of a text that its tokens still have.
    """
    answer = _SPELLED * len(without_thought(text)) + _SPELLED_MORE
    spelled = [len(token.text.strip()) for token in tokens]
    left = sum(spelled) - answer
    needed = []
    for token, chars in zip(tokens, spelled, strict=True):
        left -= chars
        is_needed = left < 0 and chars
        needed.append(token if is_needed else Token(token.text, token.logprob, ()))
    return tuple(needed)


def _token(item: Any) -> Token:
    text, logprob = _pair(item, limits.REPLY_BYTES)
    listed = item.get("top_logprobs")
    if not isinstance(listed, list) or not listed or logprob <= PLACEHOLDER:
        raise UnusableLogprobs(
            "200: log-probabilities that are placeholders or have no alternatives"
        )
    most = limits.ALTERNATIVE_CHARS
    pairs = [_pair(alternative, most) for alternative in listed[: limits.MOST_LOGPROBS]]
    if sum([math.exp(value) for _, value in pairs]) > 1 + _SUM_SLACK:
        raise UnusableLogprobs("200: log-probabilities that sum to more than 1")
    return Token(text, logprob, tuple([pair for pair in pairs if pair[1] > PLACEHOLDER]))


def _pair(item: Any, most_chars: int) -> tuple[str, float]:
    """A token and its logprob; a missing one (null, for minus infinity) is a placeholder.

    Of the token no more than so many characters are kept.
    """
    if not isinstance(item, dict):
        raise UnusableLogprobs("200: malformed log-probabilities")
    text, value = item.get("token"), item.get("logprob", PLACEHOLDER)
    # A reply holds hundreds of pairs. Nearly all are plain, and these need no further checks.
    if type(value) is float and type(text) is str and PLACEHOLDER < value <= 0 and text.isascii():
        return text[:most_chars], value
    if value is None:
        value = PLACEHOLDER
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not isinstance(text, str) or not number or not value <= _SUM_SLACK:
        raise UnusableLogprobs("200: malformed log-probabilities")
    return _clean(text[:most_chars]), float(min(0, max(PLACEHOLDER, value)))


def _name(value: Any) -> str:
    """A name as it is kept, or an empty text."""
    if not isinstance(value, str) or len(value) > NAME_CHARS:
        return ""
    return value if value.isprintable() and " " not in value else ""


def _count(value: Any) -> int:
    """A count of tokens, or 0 where it cannot be one."""
    return value if _is_count(value) else 0


def _is_count(value: Any) -> TypeGuard[int]:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 0 <= value <= MOST_TOKENS


def _dollars(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= MOST_DOLLARS else None
