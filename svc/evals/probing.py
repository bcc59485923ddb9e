"""Finds out in which way a model can be asked, and how well it keeps to labels, by asking it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from svc.engine.plans import ModelResult
from svc.errors import ApiError
from svc.providers import JSON_WAYS, LABEL_WAYS, Traits, Way
from svc.terms import Mode

STATES = (
    "I was charged twice this month. Please send the second payment back.",
    "Since this morning the app closes by itself whenever I open a report.",
    "How do I change the e-mail address that I sign in with?",
    "My invoice shows the wrong company name. Can you send a corrected one?",
    "The two-factor code never arrives, so I cannot get into my account.",
    "Your new search is great, it finds everything at once.",
)
QUESTIONS = {
    "team": {
        "type": "choice",
        "instructions": "Which team should handle this message?",
        "options": {
            "billing": "Payments, invoices and refunds",
            "technical": "Errors, crashes and outages",
            "account": "Sign-in, password and profile",
        },
    },
    "refund": {"type": "noul", "instructions": "Does the customer ask for money back?"},
}

# The share of readings that lie below the lower figure of label mass.
TENTH = 0.1


class Verdict(Enum):
    """In which way a model can be asked, from the best way down."""

    LINES = "labels, one call"
    SINGLE = "labels, a call each"
    SCHEMA = "JSON by schema"
    OBJECT = "JSON object"
    WORDS = "JSON in words"
    DECISION = "decision server"
    FAILED = "nothing"

    @property
    def has_labels(self) -> bool:
        """Whether probabilities come from log-probabilities, or straight from a decision server."""
        return self in (Verdict.LINES, Verdict.SINGLE, Verdict.DECISION)


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found out; figures are per decision, None without any answer.

    `why` says why no better way works, or why none does and what to do about that. `mass` is the
    median probability that fell on valid labels, and `low_mass` its 10th percentile.
    """

    verdict: Verdict
    why: str = ""
    mass: float | None = None
    low_mass: float | None = None
    thinks: bool = False
    latency_ms: float | None = None
    calls: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of one request to a model, and the calls and the money that it took."""

    result: ModelResult
    calls: int
    cost_usd: float


class ProbeTarget(Protocol):
    """One model that can be asked the questions about a state.

    `decides` says whether it is a decision server.
    """

    decides: bool

    def ask(self, state: str) -> Tried: ...
    def traits(self) -> Traits: ...


def probe(target: ProbeTarget, clock: Callable[[], float] = time.perf_counter) -> Probed:
    """Ask about every state; `clock` is in seconds.

    The first request needs more calls, as it finds the way; the figures are those of all others.
    """
    tried: list[Tried] = []
    latencies: list[float] = []
    failures: list[str] = []
    for state in STATES:
        started = clock()
        try:
            tried.append(target.ask(state))
        except ApiError as error:
            failures.append(error.message)
            if not tried:
                # The other texts would fail for the same reason.
                break
        else:
            latencies.append(clock() - started)
    if not tried:
        return Probed(Verdict.FAILED, failures[0])
    return _found(target, tried, latencies, failures)


def _found(
    target: ProbeTarget, tried: list[Tried], latencies: list[float], failures: list[str]
) -> Probed:
    """The figures; those of cost leave out the first request, which also had to find the way."""
    later = tried[1:] or tried
    masses = [
        reading.mass for one in tried for reading in one.result.readings if reading.mass is not None
    ]
    traits = target.traits()
    return Probed(
        _verdict(target, traits, later[-1].result),
        why="; ".join(filter(None, (_why(traits), _failed(failures)))),
        mass=statistics.median(masses) if masses else None,
        low_mass=_percentile(masses, TENTH) if masses else None,
        thinks=traits.thinks,
        latency_ms=statistics.median(latencies[1:] or latencies) * 1_000,
        calls=statistics.fmean(one.calls for one in later),
        cost_usd=statistics.fmean(one.cost_usd for one in later),
    )


def _failed(failures: list[str]) -> str:
    if not failures:
        return ""
    return f"{len(failures)} of {len(STATES)} texts had no answer: {failures[0]}"


def _verdict(target: ProbeTarget, traits: Traits, last: ModelResult) -> Verdict:
    if target.decides:
        return Verdict.DECISION
    if last.mode is Mode.LOGPROBS:
        way: Way = LABEL_WAYS[min(traits.labels.index, len(LABEL_WAYS) - 1)]
    else:
        way = JSON_WAYS[traits.json.index]
    return Verdict[way.name]


def _why(traits: Traits) -> str:
    """Why the ways above the one in use do not work, the topmost first."""
    reasons = (traits.labels.reason.words, traits.json.reason.words)
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _percentile(values: list[float], share: float) -> float:
    """The value below which the share of all values lies at most (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
