"""What one client sends without a pause: bodies made to cost much, and requests that are allowed.

Each load makes its next request from a number that no other request of the load has.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile.bodies import BODIES

# The project of the client's key, its own model, and one that takes `SLOW_S`, of a provider that
# others ask, too.
PROJECT, FAST, SLOW_MODEL = "one", "@own/prompt", "@shared/slow"
SLOW_S = 50.0

MIXED, SLOW, NEW = "all bodies in turn", "a slow model", "650 new questions"
ALLOWED_MIXED = "all allowed requests in turn"
STRANGERS = "looks and wrong keys"


@dataclass(frozen=True, slots=True)
class Request:
    """A request; one without a body is a GET, one that is not `known` has another key or none."""

    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    known: bool = True


Load = Callable[[int], Request]


def _noul(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "noul", "instructions": text, **fields}


def _choice(text: str, options: int, **fields: Any) -> dict[str, Any]:
    named = {f"o{number}": "" for number in range(options)}
    return {"type": "choice", "instructions": text, "options": named, **fields}


def _posted(path: str, **fields: Any) -> Request:
    return Request(path, json.dumps(fields).encode())


def _decide(state: Any, questions: list[dict[str, Any]], **fields: Any) -> Request:
    numbered = {f"q{number}": question for number, question in enumerate(questions)}
    fields = {"model": FAST, "project": PROJECT, **fields}
    return _posted("/v1/decide", state=state, questions=numbered, **fields)


def _new_questions(number: int) -> Request:
    names = (f"q{number}x{position}" for position in range(650))
    questions = dict.fromkeys(names, _noul("Is it so?"))
    return _posted(
        "/v1/decisions", model="@all/m", project=PROJECT, input=f"{number}", questions=questions
    )


def _many_rules(number: int) -> Request:
    rules = [
        {"if": {"a": {"contains": f"x{number}y{position}"}}, "answer": True}
        for position in range(30)
    ]
    last = {"if": {"b": 1}, "answer": False}
    return _decide({"a": "ab" * 5_000, "b": 1}, [_noul("?", rules=[*rules, last])] * 60)


def _ruled(number: int) -> Request:
    rule = {"if": {"b": 1}, "answer": "o1"}
    return _decide({"b": 1, "n": number}, [_choice("?", 200, rules=[rule])] * 64)


def _stages(number: int) -> Request:
    later = [_noul(f"{stage}?", depends_on=[f"q{stage - 1}"]) for stage in range(1, 8)]
    return _decide(f"{number}", [_noul("0?"), *later], debias=False)


def _models(count: int) -> list[str]:
    return [f"{FAST}{number}" for number in range(count)]


def _explained(number: int) -> Request:
    state = {f"f{field}": f"value {number}" for field in range(12)}
    return _decide(state, [_choice("Which?", 4), _noul("Is it?")], explain=True, debias=False)


def _linted(number: int) -> Request:
    asked = f"Is the parcel {number} not late and not lost or broken?"
    questions = {f"q{position}": _choice(f"{asked} {position}", 100) for position in range(60)}
    return _posted("/v1/lint", questions=questions)


def _forecast(number: int) -> Request:
    rule = {"if": {"a": {"contains": f"z{number}"}}, "answer": "o1"}
    questions = {f"q{position}": _choice("Which?", 20, rules=[rule]) for position in range(60)}
    sample = [{"a": "x" * 1_000}] * 100
    return _posted("/v1/forecast", questions=questions, sample=sample, rows=1_000_000)


def _job(number: int) -> Request:
    rows = [{"id": f"{row}", "state": f"{number} {row}"} for row in range(2_000)]
    questions = {f"q{position}": _noul(f"Is it {position}?") for position in range(10)}
    fields = {"model": FAST, "project": PROJECT, "debias": False}
    return _posted("/v1/batch", questions=questions, rows=rows, **fields)


def _refused(number: int) -> Request:
    questions = {f"q{position}": {"type": "noul"} for position in range(60)}
    return _posted("/v1/decide", state=f"{number}", questions=questions, project=PROJECT)


def _page(number: int) -> Request:
    """Pages of decisions, and now and then the decisions that they list."""
    if number % 9 == 0:
        return ALLOWED["16 questions of 255 options"](number)
    pages = (
        "/v1/audit?limit=1000",
        "/v1/audit?limit=1000&labelled=false&question=q0",
        "/v1/export?limit=1000&format=csv",
        "/v1/activity?last=year&by=question",
        "/v1/questions",
        "/v1/calibration?question=q0",
        "/v1/drift?question=q0&weeks=53",
        "/v1/review?question=q0&limit=100&reviewer=r",
    )
    page = pages[number % len(pages)]
    return Request(f"{page}{'&' if '?' in page else '?'}project={PROJECT}")


def _strange(number: int) -> Request:
    wrong = (("Authorization", f"Bearer svc_{number:040}"),)
    return (
        Request("/health", known=False),
        Request("/v1/decide", b'{"state":"x"}', wrong, known=False),
        Request("/ready", known=False),
        Request("/openapi.json", known=False),
    )[number % 4]


def _asked(number: int) -> dict[str, Any]:
    return _noul(f"Is it {number}?")


def _many(count: int, make: Callable[[int], dict[str, Any]], **fields: Any) -> Load:
    return lambda number: _decide(f"{number}", [make(one) for one in range(count)], **fields)


ALLOWED: dict[str, Load] = {
    "64 questions": _many(64, _asked),
    "16 questions of 255 options": _many(16, lambda n: _choice(f"Which {n}?", 255), debias=False),
    "16 questions with sets of answers": _many(
        16, lambda n: _choice(f"Which {n}?", 20, coverage=0.9), debias=False
    ),
    "16 questions with examples": _many(
        16,
        lambda n: _choice(
            f"Which {n}?",
            20,
            examples=[{"state": f"{'z' * 400}{one}", "label": "o1"} for one in range(4)],
        ),
    ),
    "a council of five": _many(12, _asked, model={"council": _models(5)}),
    "a cascade of four": _many(8, _asked, model={"cascade": _models(4), "escalate_below": 0.99}),
    "a race of four": _many(8, _asked, model={"race": _models(4)}),
    "eight stages": _stages,
    "rules that find nothing": _many_rules,
    "answers by rules alone": _ruled,
    "an explanation": _explained,
    "what was asked before": lambda n: _decide("the same", [_choice("Which?", 20)] * 64),
    "a long state": lambda n: _decide("é" * 140_000 + f"{n}", [_noul("Is it?")] * 4),
    "questions to check": _linted,
    "a forecast": _forecast,
    "jobs": _job,
    "refused questions": _refused,
    "long pages": _page,
}


def _of_body(name: str) -> Load:
    """The same request each time, whose body is made for the first one."""
    made = functools.cache(lambda: Request("/v1/decide", BODIES[name]().encode()))
    return lambda _: made()


def _in_turn(loads: list[Load]) -> Load:
    return lambda number: loads[number % len(loads)](number)


_OF_BODIES = {name: _of_body(name) for name in BODIES}

LOADS: dict[str, Load] = {
    **_OF_BODIES,
    **ALLOWED,
    MIXED: _in_turn(list(_OF_BODIES.values())),
    ALLOWED_MIXED: _in_turn(list(ALLOWED.values())),
    SLOW: _many(1, lambda n: _noul("Is it?"), model=SLOW_MODEL, debias=False),
    NEW: _new_questions,
    STRANGERS: _strange,
}
