"""Configs: each freezes a prompt template and the default mode, debias and model."""

from __future__ import annotations

from dataclasses import dataclass

from svc.terms import Mode


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned config; nothing in it may change once it is released."""

    name: str
    description: str
    release_date: str  # ISO date
    model: str  # plain id, used when the aggregator is configured
    delimited: bool  # the state stands between marks and each question has a line of guidance
    questions_first: bool  # so that providers can cache the part of the prompt that repeats
    cued: bool = False  # says "only the letter", ends with a cue, and the state's mark is secret
    mode: Mode = Mode.AUTO
    debias: bool = True


PINS = {
    pin.name: pin
    for pin in (
        Pin(
            "svc-1.0.0",
            "State, then questions, in plain text.",
            "2026-03-02",
            model="openai/gpt-4o-mini",
            delimited=False,
            questions_first=False,
        ),
        Pin(
            "svc-1.1.0",
            "The state between marks, then questions with a line of guidance each.",
            "2026-06-15",
            model="openai/gpt-4.1-mini",
            delimited=True,
            questions_first=False,
        ),
        Pin(
            "svc-1.2.0",
            "As svc-1.1.0, with the questions before the state.",
            "2026-10-05",
            model="openai/gpt-4.1-mini",
            delimited=True,
            questions_first=True,
        ),
        Pin(
            "svc-1.3.0",
            "The questions, then the state between secret marks, then a cue; worded so that small "
            "models keep the format.",
            "2026-11-21",
            model="openai/gpt-4.1-mini",
            delimited=True,
            questions_first=True,
            cued=True,
        ),
    )
}
NEWEST = "svc-1.3.0"
LATEST = "svc-latest"  # the name that stands for the operator's choice
