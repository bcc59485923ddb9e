"""What callers ask, in which project, and of which models."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from tests.chaos.behaviours import GOOD, TWISTS
from tests.chaos.ledger import PAID

# The project that callers name none of, one whose calls are paid from a budget, and one whose
# decisions are deleted after a day, on which a challenger is asked too. The last one is that of
# jobs; the load leaves it alone.
USUAL, BOUNDED, AGING, TOLD = "default", "bounded", "aging", "told"
SHARES = {USUAL: 60, BOUNDED: 20, AGING: 20}

QUESTIONS: dict[str, dict[str, Any]] = {
    "topic": {
        "type": "choice",
        "instructions": "What is the ticket about?",
        "options": {"billing": "charges and refunds", "shipping": "where an order is"},
    },
    "urgent": {"type": "noul", "instructions": "Does the customer want an answer today?"},
    "mood": {"type": "score", "instructions": "How angry?", "levels": ["calm", "cross", "angry"]},
    "tags": {"type": "multi", "instructions": "Which apply?", "options": {"vip": "", "eu": ""}},
    "sum": {"type": "number", "instructions": "Which sum?", "nullable": True},
    "name": {"type": "text", "instructions": "Which name?", "nullable": True, "think": True},
}
LABELS: dict[str, Callable[[], Any]] = {
    "topic": lambda: random.choice(["billing", "shipping", "none_of_these"]),
    "urgent": lambda: random.choice([True, False]),
    "mood": lambda: random.randrange(3),
    "tags": lambda: random.choice([[], ["vip"], ["eu", "vip"]]),
}
WORDS = ("refund", "order", "parcel", "charge", "today", "angry", "Berlin", "12.50", "EUR")

# Makes every state another one, of the same length.
_numbers = itertools.count()


def any_request() -> dict[str, Any]:
    """A request of any of the projects."""
    (project,) = random.choices(list(SHARES), list(SHARES.values()))
    return request(project)


def request(project: str = USUAL) -> dict[str, Any]:
    """A decision request that is well formed, about a state that nobody asked about before."""
    keys = random.sample(sorted(QUESTIONS), random.randint(1, 3))
    if project == AGING:
        # What its challenger is asked, and one more.
        keys = ["topic", random.choice(["urgent", "mood", "sum"])]
    return {
        "state": f"{next(_numbers):08}: {' '.join(random.choices(WORDS, k=20))}",
        "questions": {key: QUESTIONS[key] for key in keys},
        "model": plan(PAID if project == BOUNDED else "@odd"),
        "debias": random.choice([True, False, "auto"]),
        "mode": random.choice(["auto", "auto", "verbal"]),
        "project": project,
    }


def good_request(project: str, key: str) -> dict[str, Any]:
    """A request of one question for the good model, in one call that costs what each other does."""
    payer = PAID if project == BOUNDED else "@odd"
    return {
        "state": f"{next(_numbers):08}: {' '.join(WORDS)}",
        "questions": {key: QUESTIONS[key]},
        "model": f"{payer}/{GOOD}",
        "debias": False,
        "project": project,
    }


def plan(payer: str) -> Any:
    """Mostly one good model; else a bad one, or several. Models of others cost nothing."""
    good, bad = f"{payer}/{GOOD}", f"{payer}/{random.choice(sorted(TWISTS))}"
    forms = (
        good,
        bad,
        "@refused/m",
        "@tls/m",
        [bad, good],
        {"council": [good, bad]},
        {"race": [bad, good]},
        {"cascade": [bad, good]},
    )
    (form,) = random.choices(forms, (55, 20, 3, 3, 8, 4, 4, 3))
    return form
