"""One decision over the page: its address, its neighbours, and its labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Browser
from tests.browser.seeding import SAMPLE, TICKETS, decide
from tests.e2e.serving import Server
from tests.web.labelled import NOUL

pytestmark = pytest.mark.browser

EXTRACTED = {
    "amount": {"type": "number", "instructions": "Which amount is named?", "nullable": True}
}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server for one test, whose labels are its own."""
    with Server(tmp_path / "svc.db", "--demo") as started:
        yield started


@pytest.fixture
def decision(own: Server) -> Any:
    ruled = {**NOUL, "rules": [{"if": {"plan": "business"}, "answer": False}]}
    questions = {**SAMPLE["questions"], **EXTRACTED, "spam": ruled}
    return decide(
        own, SAMPLE["state"], questions, ref="ticket 7", tags={"channel": "mail"}, project="desk"
    )


def part(browser: Browser, key: str) -> str:
    """A selector of the part of the drawer that asks whether an answer was right."""
    browser.wait("dialog.drawer .answer")
    return f'dialog.drawer [role=group][aria-label="Was the answer to {key} right?"]'


def labels(server: Server, decision_id: str) -> dict[str, Any]:
    given = server.get(f"/v1/decisions/{decision_id}").json()["labels"]
    assert {one["sampled"] for one in given} <= {"other"}
    return {one["question"]: one["label"] for one in given}


def test_a_level_that_is_json_is_shown_as_it_is_written(browser: Browser, own: Server) -> None:
    """Some of it would otherwise be code that says how it is a text, or none."""
    level = {"toString": 1, "valueOf": 1}
    question = {"type": "score", "instructions": "How urgent?", "criteria": [level, level]}
    body = {"state": "Late.", "questions": {"q": question}, "project": "desk"}
    decided = own.post(body, "/v1/systemone").json()
    browser.open(own.url, f"decisions?project=desk&decision={decided['id']}")
    shown = browser.wait("dialog.drawer .answer", "toString")
    assert '{"toString":1,"valueOf":1}' in shown.text
    assert "toString" in browser.wait("tbody tr").text


def test_a_decision_has_an_address(browser: Browser, own: Server, decision: Any) -> None:
    browser.open(own.url, f"decisions?project=desk&decision={decision['id']}")
    browser.wait("dialog.drawer .facts dd", "ticket 7")
    browser.wait("dialog.drawer .facts dt", "Tag channel")
    browser.wait("dialog.drawer button", "Close").click()
    browser.wait_gone("dialog.drawer")
    closed = "#/decisions?project=desk"
    browser.until(lambda: browser.url.endswith(closed), "the address still has the decision")
    assert browser.texts("td .link") == ["ticket 7"]
    browser.wait("td .link").click()
    browser.wait("dialog.drawer .answer")
    assert browser.url.endswith(f"#/decisions?project=desk&decision={decision['id']}")


def test_a_decision_that_is_not_there_is_said_to_be_missing(browser: Browser, own: Server) -> None:
    browser.open(own.url, "decisions?decision=dec_01M817G1GXKH9DA2RF18MHXKN6")
    browser.wait("dialog.drawer .state.error h2", "Not found")


def test_neighbours_are_turned_to(browser: Browser, own: Server) -> None:
    first, second, third = (decide(own, text, {"q": NOUL})["id"] for text in TICKETS[:3])
    browser.open(own.url, f"overview?decision={second}")  # over any view
    browser.wait("dialog.drawer a", "Older").click()
    browser.wait("#drawer-title", first)
    browser.wait("dialog.drawer a", "Newer").click()
    browser.wait("#drawer-title", second)
    browser.open(own.url, f"decisions?decision={second}")
    browser.wait("caption", "Decisions of default")
    browser.open(own.url, "decisions")
    browser.wait("td .link", second).click()
    browser.wait("dialog.drawer a", "Newer").click()
    browser.wait("#drawer-title", third)
    browser.wait("dialog.drawer nav", "No newer one here")


def test_a_right_answer_becomes_a_label(browser: Browser, own: Server, decision: Any) -> None:
    browser.open(own.url, f"decisions?project=desk&decision={decision['id']}")
    keys = ("team", "urgency", "refund", "topics", "amount")
    for key in keys:
        browser.wait(f"{part(browser, key)} button", "Yes").click()
        browser.wait(f"{part(browser, key)} [role=status]", "Saved: ")
    answers = decision["answers"]
    probabilities = answers["urgency"]["probabilities"]
    assert labels(own, decision["id"]) == {
        "team": answers["team"]["choice"],
        "urgency": probabilities.index(max(probabilities)),
        "refund": answers["refund"]["noul"] >= 0.5,
        "topics": sorted(answers["topics"]["selected"]),
        "amount": answers["amount"]["value"],
    }
    assert not browser.all(part(browser, "spam"))  # a rule answered it
    browser.reload()
    browser.wait(f"{part(browser, 'team')} [role=status]", "Labelled: ")
    browser.shoot("drawer-labelled")


def test_a_wrong_answer_is_put_right_in_words(browser: Browser, own: Server, decision: Any) -> None:
    browser.open(own.url, f"decisions?project=desk&decision={decision['id']}")
    rights = {"team": ("sales", "sales"), "urgency": ("Wants an answer within days", 1)}
    for key, (words, _) in rights.items():
        browser.wait(f"{part(browser, key)} button", "No").click()
        browser.wait(f"{part(browser, key)} .label-list button", words).click()
        browser.wait(f"{part(browser, key)} [role=status]", f"Saved: {words}")
    browser.wait(f"{part(browser, 'refund')} button", "No").click()
    browser.wait(f"{part(browser, 'refund')} [role=status]", "Saved: ")
    browser.wait(f"{part(browser, 'amount')} button", "No").click()
    browser.fill(f"{part(browser, 'amount')} input", "12345678901234567")
    browser.wait(f"{part(browser, 'amount')} button[type=submit]").click()
    browser.wait(f"{part(browser, 'amount')} [role=alert]", "does not keep all digits")
    browser.fill(f"{part(browser, 'amount')} input", "49.5")
    browser.shoot("drawer-label")
    browser.wait(f"{part(browser, 'amount')} button[type=submit]").click()
    browser.wait(f"{part(browser, 'amount')} [role=status]", "Saved: 49.5")
    given = labels(own, decision["id"])
    assert given.pop("refund") is not (decision["answers"]["refund"]["noul"] >= 0.5)
    assert given == {key: label for key, (_, label) in rights.items()} | {"amount": 49.5}


def test_a_decision_is_shown_and_labelled_in_the_words_that_were_asked(
    browser: Browser, own: Server
) -> None:
    mood = {"type": "score", "instructions": "How angry?", "levels": ["calm", "furious"]}
    asked = {"late": NOUL, "mood": mood}
    anew = {
        "late": {**NOUL, "instructions": "Is it in time?"},
        "mood": {**mood, "instructions": "How calm?", "levels": ["furious", "calm"]},
    }
    older, newer = (decide(own, "furious", one)["id"] for one in (asked, anew))
    browser.open(own.url, "decisions")
    browser.wait("td .link", older)
    rows = dict(zip([newer, older], browser.texts("td .summary"), strict=True))
    assert re.search(r"mood: (furious|calm), ", rows[newer])
    assert re.search(r"mood: level \d of 0.1, mean ", rows[older])
    browser.wait("td .link", older).click()
    browser.wait(f"{part(browser, 'mood')} button", "No").click()
    assert browser.texts("dialog.drawer .asked") == [NOUL["instructions"], "How angry?"]
    browser.wait(f"{part(browser, 'mood')} .label-list button", "furious").click()
    browser.wait(f"{part(browser, 'mood')} [role=status]", "Saved: furious")
    assert labels(own, older) == {"mood": 1}


def test_what_cannot_be_saved_is_said(browser: Browser, own: Server, decision: Any) -> None:
    browser.open(own.url, f"decisions?project=desk&decision={decision['id']}")
    browser.wait(f"{part(browser, 'team')} button", "Yes")
    own.kill()
    browser.wait(f"{part(browser, 'team')} button", "Yes").click()
    browser.wait(f"{part(browser, 'team')} [role=status]", "Not saved. The server cannot be")
