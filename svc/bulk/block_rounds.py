"""A block of rows with the batches of its present round, and how far such batches are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from svc.bulk.book import Block
from svc.bulk.sending import ATTENDED, Patience, Sending


@dataclass(slots=True)
class BlockRounds:
    """The rows of a block are `answered` when none wants a further reply."""

    block: Block
    round: int = 0
    sendings: list[Sending] = field(default_factory=list)
    answered: bool = False

    @property
    def due(self) -> bool:
        """Whether its rows are to be replayed."""
        return not self.answered and all(one.over for one in self.sendings)

    def open(self, poll_s: float, patience: Patience = ATTENDED) -> None:
        """Go on with the batches of the round that the book has last; see `Sending`."""
        batches = self.block.batches
        self.round = max([int(one.stem.partition("-")[0]) for one in batches], default=0)
        apis = self.block.book.apis
        sendings = [Sending(one, apis[one.provider], poll_s, patience=patience) for one in batches]
        self.sendings = [one for one in sendings if not one.cleared]


def under_way(blocks: Iterable[BlockRounds]) -> list[Sending]:
    """The batches that have no results yet."""
    return [one for block in blocks for one in block.sendings if not one.over]


def how_far(batches: Iterable[Sending]) -> str:
    """How many requests of these batches are done, in words."""
    listed = list(batches)
    done, wanted = sum(one.done for one in listed), sum(one.file.lines for one in listed)
    noun = "batch" if len(listed) == 1 else "batches"
    return f"{done:,} of {wanted:,} requests done in {len(listed):,} {noun}"
