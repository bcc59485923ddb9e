"""Faults in the wording of a question, beneath the box to try it in."""

from __future__ import annotations

import json

import pytest

from tests.browser.chromium import Browser
from tests.browser.seeding import HOSTILE, SAMPLE
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

BAD = {"angry": {"type": "noul", "instructions": "Surely the customer is angry?"}}


def fill(browser: Browser, questions: object) -> None:
    browser.fill("textarea", json.dumps({"state": "x", "questions": questions}))


def test_faults_stand_beneath_the_box_and_go_away_again(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.wait("textarea")
    assert not browser.all(".findings")
    fill(browser, BAD)
    browser.wait(".findings summary", "1 remark on the wording").click()
    assert "says which answer is wanted" in browser.wait(".findings li").text
    browser.shoot("try-lint")
    fill(browser, SAMPLE["questions"])
    browser.wait_gone(".findings")


def test_what_is_typed_is_shown_as_text(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.wait("textarea")
    fill(browser, {HOSTILE: {"type": "noul", "instructions": f"Surely {HOSTILE}?"}})
    browser.wait(".findings summary").click()
    assert "<img" in browser.wait(".findings li").text
    assert "broken" not in browser.title


def test_a_text_that_is_no_request_has_no_remarks(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.wait("textarea")
    fill(browser, BAD)
    browser.wait(".findings")
    browser.fill("textarea", '{"state": ')
    browser.wait_gone(".findings")
