"""Which ways of asking a model are tried, in which order, and what is remembered of the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from svc.errors import ApiError
from svc.providers import (
    JSON_WAYS,
    LABEL_WAYS,
    BadReply,
    Cut,
    FormatRefused,
    NoLogprobs,
    NotThisWay,
    ProviderError,
    Reason,
    Rung,
    TraitMemory,
    Traits,
    Unread,
    Way,
)
from svc.terms import Mode


def ways(traits: Traits, mode: Mode, *, labels: int, verbal_only: bool) -> list[Way]:
    """The ways to try, best first, from where the model stands on its ladders.

    `labels` is how many lines a reply with all labels would have: a single one is asked for in
    one way. `verbal_only` says that label probabilities cannot answer.
    """
    json = _from(traits.json, JSON_WAYS, insists=True)
    if mode is Mode.VERBAL or (mode is Mode.AUTO and verbal_only):
        return json
    by_label = _from(traits.labels, LABEL_WAYS, insists=mode is Mode.LOGPROBS)
    if labels == 1 and by_label:
        by_label = [Way.SINGLE]
    return by_label if mode is Mode.LOGPROBS else [*by_label, *json]


def _from(rung: Rung, ladder: Sequence[Way], *, insists: bool) -> list[Way]:
    """The ladder from where the model stands; all of it now and then, and where nothing is left.

    `insists` says that there is no other ladder to go on to.
    """
    if rung.due or (insists and rung.index >= len(ladder)):
        return list(ladder)
    return list(ladder[rung.index :])


@dataclass(slots=True)
class Climb:
    """The ways that failed for one request to a model so far, and why the last of them did.

    Of those in `unread` the replies were not read. `traits_before` is what was known of the model
    when the request began.
    """

    traits_before: Traits
    failed: list[Way] = field(default_factory=list)
    unread: list[Way] = field(default_factory=list)
    reason: Reason = Reason.NONE

    def note_failure(self, way: Way, failures: Sequence[ProviderError | ApiError]) -> None:
        """Note that a way failed in every option order.

        That replies were not read, as others held too much, says nothing of the model by itself.
        """
        known = [one for one in filter(moves_on, failures) if not isinstance(one, Unread)]
        if known:
            self.failed.append(way)
            self.reason = _reason(known[0])
        else:
            self.unread.append(way)

    def settle(self, memory: TraitMemory, name: str, worked: Way) -> None:
        """Remember how the model of this name was asked with success."""
        if not self.failed and worked in LABEL_WAYS and self.traits_before.labels.settled(worked):
            # Nearly every request ends here, as there is nothing new to remember.
            return
        if self._traits_after(self.traits_before, worked) != self.traits_before:
            memory.change(name, lambda traits: self._traits_after(traits, worked))

    def _traits_after(self, traits: Traits, worked: Way) -> Traits:
        return replace(
            traits,
            labels=self._rung(traits.labels, LABEL_WAYS, worked),
            json=self._rung(traits.json, JSON_WAYS, worked),
        )

    def _rung(self, rung: Rung, ladder: Sequence[Way], worked: Way) -> Rung:
        failed = [ladder.index(way) for way in self.failed if way in ladder]
        unread = [ladder.index(way) for way in self.unread if way in ladder]
        if failed:
            # Whether the model needs ways that failed is open, as an unread one above may work.
            failed = sorted(failed + [way for way in unread if way < max(failed)])
        elif unread and rung.due:
            rung = rung.put_off()
        if worked in ladder:
            return rung.after(failed, ladder.index(worked), self.reason)
        if failed:
            return rung.after(failed, failed[-1] + 1, self.reason)
        # A success on the other ladder alone counts towards the next try of this one's top.
        return rung.waited() if ladder is LABEL_WAYS else rung


def moves_on(failure: ProviderError | ApiError) -> bool:
    """Whether another way of asking may succeed where this failed."""
    return isinstance(failure, NotThisWay | BadReply)


def _reason(failure: ProviderError | ApiError) -> Reason:
    if isinstance(failure, NoLogprobs):
        return Reason.NO_PROBABILITIES
    if isinstance(failure, FormatRefused):
        return Reason.REFUSED
    return Reason.CUT if isinstance(failure, Cut) else Reason.UNREADABLE
