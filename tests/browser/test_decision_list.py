"""Filters of the decisions, their export, and the page of keys."""

from __future__ import annotations

import csv

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import Keys
from tests.browser.seeding import HOSTILE
from tests.browser.test_keys import give
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser


def test_decisions_are_filtered_and_the_address_keeps_it(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions?project=learned")
    browser.settled()
    browser.choose("select[name=question]", "animal")
    browser.choose("select[name=labelled]", "false")
    browser.wait("button", "Show").click()
    browser.wait(".state", "No decisions of learned fit")
    assert "question=animal" in browser.url and "labelled=false" in browser.url
    browser.open(server.url, "decisions?question=team&answer=sales")
    browser.settled()
    assert browser.all("td .link")
    assert all("team: sales" in text for text in browser.texts("td .summary"))


def test_a_filter_that_is_no_number_is_refused_in_words(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions?question=team&max_confidence=high")
    browser.wait(".state.error", "max_confidence")


def test_decisions_are_exported_as_one_file(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions?project=learned")
    browser.settled()
    browser.wait("button", "Export as CSV").click()
    browser.wait("[role=status]", "Exported")
    path = browser.downloads / "decisions-learned.csv"
    browser.until(path.exists, "no file was saved")
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert len(rows) == 300 and {row["question"] for row in rows} == {"animal"}
    assert {row["label"] for row in rows} == {"cat", "dog"}


def test_keys_are_shown_without_their_texts(browser: Browser, guarded: tuple[Server, Keys]) -> None:
    server, keys = guarded
    browser.open(server.url, "keys")
    give(browser, keys["all"])
    browser.wait("table", "All keys, the oldest first")
    rows = browser.texts("tbody tr")
    assert len(rows) == len(keys) and all("active" in row for row in rows)
    assert any("shop" in row for row in rows) and "all projects" in rows[0]
    page = browser.run("return document.documentElement.outerHTML")
    assert not [key for key in keys.values() if key in page]
    browser.shoot("keys-listed")


def test_a_key_of_one_project_is_told_that_it_may_not(
    browser: Browser, guarded: tuple[Server, Keys]
) -> None:
    server, keys = guarded
    browser.open(server.url, "keys")
    give(browser, keys["shop"])
    browser.wait(".state.error", "may not see who has keys")


def test_a_project_whose_name_is_markup_is_picked(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.choose("select[name=project]", HOSTILE)
    browser.wait("caption", "Decisions of <img")
    assert "broken" not in browser.title and not browser.all("main img")
