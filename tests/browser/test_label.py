"""The page on which a reviewer labels decisions by the keyboard, from a file that stays there."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.seeding import HOSTILE, decide
from tests.browser.test_reading import _COLOURS, _WIDE, TEXTS, contrast, network
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

TICKETS = 30
TEAM = {
    "type": "choice",
    "instructions": "Which team should handle this ticket?",
    "options": {
        "account": "Login, password and profile",
        "billing": "Payments, invoices and refunds",
        "technical": "Errors, outages and bugs",
    },
}
# The options in the order of their keys, then the escape option.
NAMES = ("account", "billing", "technical", "none_of_these")
# Words that stand in every text and nowhere else.
MARK = "zebrafish"
PARTS = ("I was charged twice", "My login fails; it says:\n\"wrong, again\"", "An error, and a crash")


@dataclass
class Desk:
    """A server whose project `desk` has decisions on tickets, its database, and the tickets."""

    server: Server
    db: Path
    texts: dict[str, str]

    def labels(self, question: str = "team") -> dict[str, Any]:
        """What was labelled, by ref."""
        page = self.server.get("/v1/audit?project=desk&limit=100").json()
        shown = [self.server.get(f"/v1/decisions/{one['id']}").json() for one in page["entries"]]
        return {
            one["ref"]: found["label"]
            for one in shown
            for found in one["labels"]
            if found["question"] == question
        }


def ticket(number: int) -> str:
    return f"{PARTS[number % len(PARTS)]}. {MARK} {number}"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    texts = {f"T-{number}": ticket(number) for number in range(TICKETS)}
    with Server(tmp_path / "svc.db", "--demo") as server:
        for ref, text in texts.items():
            decide(server, text, {"team": TEAM}, project="desk", ref=ref)
        yield Desk(server, tmp_path / "svc.db", texts)


def table(texts: dict[str, str], delimiter: str = ",", head: tuple[str, str] = ("ref", "text")) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows([head, *texts.items()])
    return written.getvalue()


@pytest.fixture
def tickets(desk: Desk, tmp_path: Path) -> Path:
    """The tickets as spreadsheets write them."""
    path = tmp_path / "tickets.csv"
    path.write_text(table(desk.texts), "utf-8-sig", newline="")
    return path


def open_page(browser: Browser, server: Server, **look: Any) -> None:
    query = {"project": "desk", "question": "team", "reviewer": "ada"}
    browser.open(server.url, f"label?{urlencode(query)}", **look)


def choose(browser: Browser, *paths: Path) -> None:
    browser.wait("input[type=file]").send_keys("\n".join(map(str, paths)))
    browser.wait(".label-files .note")


def begin(browser: Browser, *paths: Path) -> None:
    choose(browser, *paths)
    browser.wait("button", "Start").click()
    browser.wait(".label-text")


def shown(browser: Browser) -> str:
    """The ref of the item that is shown."""
    return browser.wait("article > .note").text


def press(browser: Browser, key: str) -> None:
    browser.press(key)


def saved(browser: Browser) -> None:
    browser.wait(".label-saving", "All saved")


def test_twenty_of_thirty_are_labelled_by_keys(
    browser: Browser, desk: Desk, tickets: Path
) -> None:
    open_page(browser, desk.server)
    begin(browser, tickets)
    given = {}
    for number in range(20):
        if number == 10:
            saved(browser)
            browser.reload()
            begin(browser, tickets)
        ref = shown(browser)
        assert browser.wait(".label-text").text == desk.texts[ref].strip()
        given[ref] = NAMES[number % 4]
        press(browser, str(number % 4 + 1))
    saved(browser)
    browser.wait(".label-progress", "20 labelled")
    assert len(given) == 20
    assert desk.labels() == given
