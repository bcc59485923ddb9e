"""Decisions and feedback, made over HTTP, that give every view something to show."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

from tests.e2e.serving import ROOT, Server
from tests.web.labelled import NOUL
from tests.web.models import ANIMAL

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"
SAMPLE: dict[str, Any] = json.loads((ROOT / "templates/demo_request.json").read_text("utf-8"))
TICKETS = (
    "My card was charged twice, please refund the second payment of 49 euros.",
    "The login fails since this morning and the whole team is blocked, this is urgent.",
    "We would like an offer for 200 more seats and a yearly contract.",
    "The invoice of May shows the wrong price, please correct the payment.",
    "An error comes up with the new password when I log in.",
)
EXTRACTED = {
    "amount": {"type": "number", "instructions": "Which amount is named?", "nullable": True},
    "note": {"type": "text", "instructions": "Which product is it about?", "nullable": True},
}
PAGED = 60  # decisions of the project `default`: three pages
LABELS = 300  # of the project `learned`
SURE = (
    (0.999, 1.0),
    (0.97, 1.0),
    (0.9, 0.75),
    (0.8, 0.65),
    (0.65, 0.55),
    (0.55, 0.5),
)  # and how many are right
RATED_DECISIONS = 180  # of the project `rated`, a third of them labelled
DAY_S = 86_400
BUSY_DAYS = 300  # of the project `busy`
FEW = 12  # labels of the project `few`, of two confidences


def seed(server: Server, db: Path) -> None:
    """Fill the database of a server that has the demonstration and the scripted model."""
    tickets(server)
    learned(server)
    few(server)
    rated(server)
    skipping(server)
    drifting(server, db)
    hostile(server)
    busy(db)
    decide(server, "A cat.", {"q": ANIMAL, "value": EXTRACTED["note"]}, privacy="strict")


def decide(server: Server, state: Any, questions: Any, **fields: Any) -> Any:
    response = server.post({"state": state, "questions": questions, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def label(server: Server, decision: Any, question: str, truth: Any) -> None:
    body = {"decision_id": decision["id"], "question": question, "label": truth}
    assert server.post(body, "/v1/feedback").status_code == 200


def tickets(server: Server) -> None:
    """Pages of decisions of every type; the newest has all that an answer may say."""
    for number in range(PAGED - 2):
        state = f"{TICKETS[number % len(TICKETS)]} Ticket {number // 2}."
        decide(server, state, SAMPLE["questions"])
    decide(server, TICKETS[0], {**SAMPLE["questions"], **EXTRACTED})
    team = {**SAMPLE["questions"]["team"], "min_confidence": 0.99, "coverage": 0.9}
    urgent = {"type": "noul", "instructions": "Is it urgent?", "when": {"plan": "none"}}
    ruled = {**NOUL, "rules": [{"if": {"plan": "business"}, "answer": False}]}
    questions = {"team": team, "urgent": urgent, "spam": ruled}
    decide(server, SAMPLE["state"], questions, explain=True)


def learned(server: Server) -> None:
    """A model that is too sure of itself: the more so, the less sure it is."""
    for number in range(LABELS):
        p, right = SURE[number % len(SURE)]
        truth = (number // len(SURE) * 7) % 20 < right * 20
        asked = {"project": "learned", "model": "@scripted/m", "debias": False}
        decision = decide(server, f"cat={p}; {number}", {"animal": ANIMAL}, **asked)
        label(server, decision, "animal", "cat" if truth else "dog")


def few(server: Server) -> None:
    """Labels too few for a line through them."""
    for number in range(FEW):
        asked = {"project": "few", "model": "@scripted/m", "debias": False}
        decision = decide(server, f"cat={0.6 + number % 2 * 0.3}; {number}", {"q": ANIMAL}, **asked)
        label(server, decision, "q", "cat" if number % 3 else "dog")


def rated(server: Server) -> None:
    """Cats in eight answers of ten, and in half of the truths; every third decision is labelled."""
    for number in range(RATED_DECISIONS):
        cat = number % 10 < 8
        asked = {"project": "rated", "model": "@scripted/m", "debias": False}
        state = f"cat={0.8 if cat else 0.1}; {number}"
        decision = decide(server, state, {"animal": ANIMAL}, **asked)
        if number % 3 == 0:
            label(server, decision, "animal", "cat" if cat and number % 8 < 5 else "dog")


def skipping(server: Server) -> None:
    """A latest decision whose first question was skipped."""
    skipped = {**SAMPLE["questions"]["team"], "when": {"plan": "none"}}
    questions = {"refused": skipped, "answered": SAMPLE["questions"]["team"]}
    decide(server, SAMPLE["state"], {"older": SAMPLE["questions"]["team"]}, project="skipping")
    decide(server, SAMPLE["state"], questions, project="skipping")


def drifting(server: Server, db: Path) -> None:
    """Six weeks of mostly cats, and one of dogs; earlier ones are moved back in the database.

    Of `wavering` there are too few decisions to tell such a change from chance.
    """
    for project, tenth in (("drifting", 3), ("wavering", 1)):
        for week in range(7):
            with contextlib.closing(sqlite3.connect(db, timeout=10)) as connection, connection:
                connection.execute("UPDATE weeks SET week = week - 1 WHERE project = ?", (project,))
            for number in range(10 * tenth):
                p = 0.9 if number < (3 if week == 6 else 7 + week % 3) * tenth else 0.2
                asked = {"project": project, "model": "@scripted/m", "debias": False}
                decide(server, f"cat={p}; {week} {number}", {"animal": ANIMAL}, **asked)


def busy(db: Path) -> None:
    """Sums of a year with two models, whose decisions nobody needs; the server has counted them."""
    today = int(time.time()) // DAY_S * DAY_S
    models = (("@openai/gpt-4.1-mini", 1.0, 0.0004, 420), ("@own/small-model", 0.4, 0.0, 95))
    rows: list[tuple[Any, ...]] = []
    for day in range(BUSY_DAYS):
        start = today - (BUSY_DAYS - 1 - day) * DAY_S
        count = 900 + 500 * (day % 7 < 5) + day
        for model, share, dollars, milliseconds in models:
            asked = int(count * share)
            sums = (asked, asked // 90, asked // 5, asked * 2, asked // 8, asked * dollars)
            rows.append((DAY_S, "model", start, "busy", model, *sums, asked * milliseconds * 0.8))
        for question, part in (("intent", 1.0), ("urgent", 0.6)):
            asked = int(count * part)
            sums = (asked, 0, 0, asked, asked // 9, 0.0)
            rows.append((DAY_S, "question", start, "busy", question, *sums, 0.0))
    with contextlib.closing(sqlite3.connect(db, timeout=10)) as connection, connection:
        places = ", ".join("?" * 12)
        connection.executemany(f"INSERT INTO activity VALUES ({places})", rows)


def hostile(server: Server) -> None:
    """Names that would run a script wherever they became markup."""
    options = {HOSTILE: HOSTILE, "plain": "", "__proto__": "", f"a{HOSTILE}": ""}
    question = {"type": "choice", "instructions": HOSTILE, "options": options}
    several = {"type": "multi", "instructions": "Which?", "options": options}
    text = {"type": "text", "instructions": "What is named?"}
    questions = {HOSTILE: question, "__proto__": several, "value": text}
    for number in range(3):
        decide(server, f"{HOSTILE} {number}", questions, project=HOSTILE)
