"""The key that is typed in, and what is said to those without a right one."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys as Key

from tests.browser.chromium import Browser
from tests.browser.conftest import Keys
from tests.e2e.serving import Server
from tests.e2e.test_access import make_key, svc

pytestmark = pytest.mark.browser

Guarded = tuple[Server, Keys]
_STORED = """return [Object.values(sessionStorage), localStorage.length, document.cookie,
  document.documentElement.outerHTML + location.href + document.getElementById("key").value]"""


def give(browser: Browser, key: str) -> None:
    """Type a key into the dialog that asks for it."""
    browser.fill("#key", key + Key.ENTER)
    browser.wait_gone("#key-dialog")


def test_without_a_key_the_page_asks_for_it(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "decisions")
    browser.wait("#key-dialog", "API key")
    assert browser.find(".state.error h2", "An API key is needed")
    assert browser.wait("#key-button").text == "API key"
    browser.shoot("key")
    give(browser, keys["all"])
    browser.wait(".state", "No decisions of default")
    browser.wait("#key-button", "API key: set")


def test_a_wrong_key_is_refused_and_another_one_taken(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "overview")
    browser.fill("#key", "svc_wrong" + Key.ENTER)
    browser.wait("#key-button", "API key: not accepted")
    browser.wait("#key-reason", "the API key is unknown or was revoked")
    browser.wait("#key-forget")  # there is one to forget, and it was refused
    browser.press(Key.ESCAPE)
    browser.wait(".state.error h2", "This API key is not accepted")
    browser.shoot("error-401")
    browser.wait("button", "Enter another key").click()
    give(browser, keys["all"])
    browser.wait(".figure", "Decisions")
    assert browser.wait("#key-button").text == "API key: set"


def test_a_key_revoked_meanwhile_is_not_accepted(browser: Browser, tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    with Server(db, "--demo") as server:
        key_id, key = make_key(db, "gone")
        browser.open(server.url, "decisions")
        give(browser, key)
        browser.wait(".state", "No decisions of default")
        svc("keys", "revoke", key_id, db=db)
        browser.wait("button", "Show").click()
        browser.wait(".state.error h2", "This API key is not accepted")
        browser.wait("#key-button", "API key: not accepted")


def test_the_key_stays_in_this_tab_and_in_its_header(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "overview")
    give(browser, keys["all"])
    browser.wait(".figure", "Decisions")
    browser.reload()
    browser.wait(".figure", "Decisions")
    stored, kept_longer, cookies, page = browser.run(_STORED)
    assert (stored, kept_longer, cookies) == ([keys["all"]], 0, "")
    assert keys["all"] not in page
    _, requests = browser.drain()
    asked = [one for one in requests if one["url"].endswith("/metrics")]
    assert asked[-1]["headers"]["Authorization"] == f"Bearer {keys['all']}"
    for request in requests:
        del request["headers"]
        assert keys["all"] not in str(request)
    assert keys["all"] not in server.log


def test_a_forgotten_key_is_gone(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "try")
    browser.wait("#key-button", "API key").click()
    give(browser, keys["all"])
    browser.wait("#key-button", "API key: set").click()
    browser.wait("#key-forget").click()
    assert browser.run("return sessionStorage.length") == 0
    assert browser.wait("#key-button").text == "API key"


def test_a_key_that_no_header_can_hold_is_not_taken(browser: Browser, guarded: Guarded) -> None:
    browser.open(guarded[0].url, "overview")
    browser.wait("#key-dialog[open]")
    browser.fill("#key", "svc_schlüssel" + Key.ENTER)
    assert browser.find("#key-dialog[open]")
    assert browser.run("return sessionStorage.length") == 0


def test_a_key_of_one_project_may_not_see_another(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "decisions?project=bank")
    give(browser, keys["shop"])
    browser.wait(".state.error", "this API key is for another project")
    assert browser.find("h2", "This API key may not see this project")
    assert browser.find("button", "Enter another key")
    assert browser.wait("#key-button").text == "API key: set"
    browser.shoot("error-403")
    browser.choose("select[name=project]", "")
    browser.wait(".state", "No decisions of shop")


def test_a_key_over_its_rate_is_told_when_to_come_back(browser: Browser, guarded: Guarded) -> None:
    server, keys = guarded
    browser.open(server.url, "try")
    browser.wait("#key-button").click()
    give(browser, keys["slow"])
    for _ in range(2):
        browser.wait("button[type=submit]", "Decide").click()
        browser.wait("[aria-live] > *")
    browser.wait(".state.error", "Too many requests")
    assert browser.find(".state.error", "Try again in")
    browser.shoot("error-429")
