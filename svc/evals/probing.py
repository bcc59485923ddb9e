"""In which way a model can be asked, and how well it keeps to labels, found by asking it."""

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
TENTH = 0.1  # the share of readings below the lower figure of label mass


class Verdict(Enum):
    """In which way a model can be asked: what works for it, from the best down."""

    LINES = "labels, one call"
    SINGLE = "labels, a call each"
    SCHEMA = "JSON by schema"
    OBJECT = "JSON object"
    WORDS = "JSON in words"
    DECISION = "decision server"
    FAILED = "nothing"

    @property
    def has_labels(self) -> bool:
        """Whether its probabilities are read from log-probabilities, or are its very answer."""
        return self in (Verdict.LINES, Verdict.SINGLE, Verdict.DECISION)


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found; figures are per decision, None without any answer.

    `why` says why no better way works, or why none does and what to do about that.
    """

    verdict: Verdict
    why: str = ""
    mass: float | None = None  # median probability that fell on valid labels
    low_mass: float | None = None  # its 10th percentile
    thinks: bool = False
    latency_ms: float | None = None
    calls: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """One ask that was answered, and what it took."""

    asked: ModelResult
    calls: int
    cost_usd: float


class ProbeTarget(Protocol):
    """One model that can be asked the questions about a state."""

    decides: bool  # whether it is a decision server

    def ask(self, state: str) -> Tried: ...
    def traits(self) -> Traits: ...


def probe(target: ProbeTarget, clock: Callable[[], float] = time.perf_counter) -> Probed:
    """Ask about every state; `clock` is in seconds.

    The first ask finds the way and pays for it; the figures are those of all that follow.
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
                break  # the others would meet the same
        else:
            latencies.append(clock() - started)
    if not tried:
        return Probed(Verdict.FAILED, failures[0])
    return _found(target, tried, latencies, failures)


def _found(
    target: ProbeTarget, tried: list[Tried], latencies: list[float], failures: list[str]
) -> Probed:
    """What the answers show; the first of them also paid for finding the way."""
    later = tried[1:] or tried
    masses = [
        reading.mass for one in tried for reading in one.asked.readings if reading.mass is not None
    ]
    traits = target.traits()
    return Probed(
        _verdict(target, traits, later[-1].asked),
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
