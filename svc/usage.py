"""Each model's calls, tokens and cost, and how well it keeps to labels, over all processes."""

from __future__ import annotations

from operator import add
from typing import NamedTuple

from svc.tallies import Tally, TallyBoard

# The models of one process. Callers choose their ids, so the last place counts all the others.
MODELS = 64

# A longer id of a model counts as one of the others.
_ID_BYTES = 320


class Counts(NamedTuple):
    """The sums of one model.

    `mass` is the sum, over the given number of label `readings`, of the probability that fell on
    valid labels.
    """

    calls: float = 0.0
    failures: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost_usd: float = 0.0
    mass: float = 0.0
    readings: float = 0.0

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(add, self, other))


class StatedUsage(NamedTuple):
    """What a provider says that one call used; 0, and None for the dollars, where it says nothing.

    `reported_cost` is in dollars.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reported_cost: float | None = None


# That of calls of which nothing is said.
NO_USAGE = StatedUsage()


class TokenDetails(NamedTuple):
    """What providers say of the tokens of a call: input tokens from and into a prompt cache, and
    output tokens of thought; 0 for what they do not say.
    """

    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0

    def plus(self, other: TokenDetails) -> TokenDetails:
        return TokenDetails(*map(add, self, other))


# The details of calls of which nothing is said.
NO_DETAILS = TokenDetails()


class UsageBoard:
    """The counts of all processes; made before these are forked."""

    def __init__(self) -> None:
        self._board = TallyBoard(MODELS, _ID_BYTES, len(Counts._fields))
        self.close = self._board.close

    def open(self) -> Usage:
        """The counts of this process alone."""
        return Usage(self._board.open())

    def sums(self) -> dict[str, Counts]:
        """The counts of each model, over all processes."""
        return {model_id: Counts(*numbers) for model_id, numbers in self._board.sums().items()}


class Usage:
    """Counts for one process; safe across its threads."""

    def __init__(self, tally: Tally | None = None) -> None:
        """Without a `tally` nothing is counted."""
        self._tally = tally

    def add(self, model_id: str, counts: Counts) -> None:
        """Add to the counts of a model."""
        if self._tally is not None:
            # An id of which every call failed may name no model, and gets no place.
            self._tally.add(model_id, counts, lasting=counts.calls > counts.failures)
