"""The engine that asks challengers: in threads and over connections of its own.

It stores nothing and remembers no answers, of which neither cost nor time would be known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from svc import limits
from svc.engine.assembly import Core, SharedCalls, Surroundings, Take, assemble
from svc.engine.challenges import THREADS
from svc.engine.traced import challenge
from svc.records import Decision
from svc.settings import Settings
from svc.usage import Usage

# How many groups of questions of a decision are asked at a time of a challenger.
CALLS_AT_ONCE = 4


class Nowhere:
    """A journal that keeps nothing."""

    def add(self, decision: Decision) -> str:
        return ""

    def add_failure(self, project: str, model: str) -> None:
        """Challengers count in no sums of their project."""


class Beside:
    """An engine whose calls can be cut, see `Decides`."""

    def __init__(self, core: Core, traced: bool) -> None:
        decide = core.engine.decide
        self.decide = partial(challenge, decide) if traced else decide
        self.cut = core.close


def beside(
    settings: Settings,
    shared: SharedCalls,
    around: Surroundings,
    take: Take,
    usage: Usage,
    traced: bool,
) -> Beside:
    """The engine in the same surroundings, but for their journal; see `assemble`."""
    threads = THREADS * limits.CALLS_PER_REQUEST_THREAD * CALLS_AT_ONCE
    core = assemble(
        replace(settings, cache_size=0),
        shared,
        replace(around, journal=Nowhere()),
        take=take,
        flow_threads=threads,
        call_threads=threads,
        usage=usage,
        gives_way=True,
        traced=traced,
    )
    return Beside(core, traced)
