"""Configs: each fixes a prompt template and the default mode, debias and model."""

from __future__ import annotations

from dataclasses import dataclass

from svc.terms import Mode


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned config; nothing in it may change once it is released.

    `release_date` is an ISO date. `model` is an id without a prefix, used when the aggregator is
    configured. A `delimited` prompt has the state between marks and a line of guidance for each
    question. With `questions_first` providers can cache the part of the prompt that repeats. A
    `cued` prompt says "only the letter", ends with a cue, and has secret marks around the state.
    """

    name: str
    description: str
    release_date: str
    model: str
    delimited: bool
    questions_first: bool
    cued: bool = False
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

# This name stands for the operator's choice.
LATEST = "svc-latest"
