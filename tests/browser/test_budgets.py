"""The card of budgets in dollars: what of each is spent, and which are near their limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.store import NANO, Account, Budget, Budgets, Claim, Database, Per, Scope
from tests.browser.chromium import Browser
from tests.browser.test_rules import keep, looks
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

CARD = ".card"


def spend(db: Path, project: str, per: Per, limit: float, spent: float, **given: bool) -> None:
    database = Database.open(db)
    budgets = Budgets(database)
    budgets.set(Budget(Scope.PROJECT, project, per, round(limit * NANO), **given))
    account = Account(Scope.PROJECT, project, per, per.period(time.time()))
    budgets.claim([Claim(account, round(spent * NANO), 0)])
    database.close()


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    db: Path = tmp_path_factory.mktemp("budgets") / "svc.db"
    with Server(db, "--demo") as server:
        spend(db, "shop", Per.DAY, 50, 12.5)
        spend(db, "shop", Per.MONTH, 400, 380)
        spend(db, "lab", Per.DAY, 5, 6, hard=False)
        yield server


@looks
def test_the_card_breaks_no_rule(browser: Browser, bounded: Server, width: int, dark: bool) -> None:
    browser.open(bounded.url, "overview", width=width, dark=dark)
    browser.wait("caption", "What calls to models cost")
    browser.settled()
    keep(browser, "budgets", width, dark)


def test_each_budget_says_how_far_it_is(browser: Browser, bounded: Server) -> None:
    browser.open(bounded.url, "overview")
    card = browser.wait(CARD, "What calls to models cost").text
    for words in ("25.0%", "$12.50", "95.0%", "near its limit", "120.0%", "spent", "warns only"):
        assert words in card
    assert browser.run("return [...document.querySelectorAll('progress')].map((p) => p.value)") == [
        *(1, 0.25, 0.95)
    ]
    browser.shoot("budgets")


def test_of_one_project_only_its_budgets_are_shown(browser: Browser, bounded: Server) -> None:
    browser.open(bounded.url, "overview?project=lab")
    card = browser.wait(CARD, "What calls to models cost").text
    assert "lab" in card and "shop" not in card


def test_without_budgets_there_is_no_card(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview?last=hour")
    browser.settled()
    assert "What calls to models cost" not in " ".join(browser.texts("caption"))
