"""What a call may cost at most, before it is made, in dollars."""

from __future__ import annotations

from svc.jsontext import dumps
from svc.providers.bodies import ChatCall, output_limit
from svc.providers.catalog import Provider
from svc.providers.failures import ProviderError
from svc.providers.prices import TokenUsage, cost_usd, price_of
from svc.providers.protocol import DecisionCall
from svc.providers.replies import Completion
from svc.providers.traits import UNKNOWN, Traits

# Tokenizers make about four bytes of a Latin script a token, and fewer of numbers and code.
TOKEN_BYTES = 3

# What providers count for a picture in full detail, and what a decision server may write.
IMAGE_TOKENS = 2_000
DECISION_TOKENS = 512

# What a provider may say that a call used beyond a token for each byte that was sent, as with what
# it adds of itself; what it may count for a picture; and what it may have written, with all
# thoughts.
BELIEVED_BEYOND, BELIEVED_A_PICTURE, BELIEVED_WRITTEN = 100_000, 30_000, 200_000

# What a model may write that refuses every limit: as much as most write at most by themselves.
UNLIMITED_TOKENS = 16_384


def price_before(provider: Provider, model_name: str) -> tuple[float, float] | None:
    """Dollars per million tokens of input and output to reckon with, None where nobody knows them.

    What the aggregator charges is known after a call, wherever it is reached.
    """
    return provider.price if provider.aggregator else price_of(provider, model_name)


def most_usd(
    provider: Provider, model_name: str, call: ChatCall | DecisionCall, traits: Traits = UNKNOWN
) -> float | None:
    """Dollars of a call whose output limit is used up; None where nobody knows the price.

    The limit is the one that is sent to a model with these traits.
    """
    price = price_before(provider, model_name)
    if price is None:
        return None
    if not any(price):
        return 0.0
    if isinstance(call, ChatCall):
        limit = output_limit(provider, call, traits)
        tokens_in, tokens_out = _chat(call), UNLIMITED_TOKENS if limit is None else limit
    else:
        tokens_in, tokens_out = _decision(call), DECISION_TOKENS
    return (tokens_in * price[0] + tokens_out * price[1]) / 1e6


def is_believable(call: ChatCall | DecisionCall, usage: TokenUsage) -> bool:
    """Whether a call can have used so many tokens. Budgets hang on what providers say of that.

    A decision server may have its model read everything anew for each question.
    """
    times = len(call.questions) if isinstance(call, DecisionCall) else 1
    beyond = usage.input_tokens - BELIEVED_BEYOND * times
    read = beyond <= 0 or beyond <= times * (call.size + BELIEVED_A_PICTURE * len(call.images))
    return read and usage.output_tokens <= BELIEVED_WRITTEN * times


def charged_usd(
    provider: Provider, model_name: str, outcome: Completion | Exception, most: float
) -> float:
    """Dollars to count for an attempt: its cost, or the `most` where that is not known.

    Of an error it is not known where the model may have answered, and 0 otherwise. Where its reply
    states what the call used, and that costs more than the `most`, this is counted.
    """
    if isinstance(outcome, Completion):
        cost = cost_usd(provider, model_name, outcome)
        told = outcome.reported_cost is not None if provider.aggregator else _tells_tokens(outcome)
        return cost if told else max(most, cost)
    if isinstance(outcome, ProviderError) and outcome.may_be_charged:
        return max(most, cost_usd(provider, model_name, outcome.usage))
    return 0.0


def _tells_tokens(completion: Completion) -> bool:
    """Whether both counts of tokens are known: every call reads some, and every chat writes some.

    Decision servers count no output.
    """
    written = completion.output_tokens > 0 or bool(completion.decided)
    return completion.input_tokens > 0 and written


def _chat(call: ChatCall) -> float:
    """Tokens of what is sent."""
    size, images = 0, 0
    for message in call.messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        texts = [part["text"] for part in parts if "text" in part]
        size += sum(len(text.encode("utf-8", "replace")) for text in texts)
        images += len(parts) - len(texts)
    if call.schema is not None:
        size += len(dumps(call.schema))
    return size / TOKEN_BYTES + images * IMAGE_TOKENS


def _decision(call: DecisionCall) -> float:
    """Tokens of what is sent."""
    texts = [call.state, *(dumps([one.instructions, *one.options]) for one in call.questions)]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return size / TOKEN_BYTES + len(call.images) * IMAGE_TOKENS
