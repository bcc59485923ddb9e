"""Names that are markup, requests elsewhere, and what the policy forbids."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest
from selenium.common.exceptions import JavascriptException
from selenium.webdriver.common.by import By

from tests.browser.chromium import Browser
from tests.browser.seeding import HOSTILE, decide
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

VIEWS = ("overview", "decisions", "jobs", "label", "calibration", "drift", "keys", "try")
ELSEWHERE = "http://127.0.0.1:9/"  # another origin, where nobody listens
_SHOWN = """return document.querySelector('main').innerText
  + [...document.querySelectorAll('input')].map((field) => field.value)"""
_CHOICES = """return [...document.querySelectorAll('[name=question] option')]
  .map((choice) => [choice.value, choice.text])"""
_FETCH = "return fetch(arguments[0]).then(() => 'answered', () => 'refused')"
_MARKUP = """try { document.body.insertAdjacentHTML('beforeend', '<b id="made"></b>') }
  catch (error) { return error.name }"""
_INLINE = """const script = document.createElement('script');
  script.text = 'document.title = "broken"'; document.body.append(script)"""


@pytest.mark.parametrize("view", ["decisions", "jobs", "calibration", "drift"])
def test_a_name_that_is_markup_is_shown_as_text(
    browser: Browser, server: Server, view: str
) -> None:
    browser.open(server.url, f"{view}?project={quote(HOSTILE)}&question={quote(HOSTILE)}")
    browser.settled()
    assert HOSTILE in browser.run(_SHOWN)
    assert not browser.all("main img")
    assert "broken" not in browser.title


def test_an_option_that_is_markup_is_shown_as_text(browser: Browser, server: Server) -> None:
    browser.open(server.url, f"decisions?project={quote(HOSTILE)}")
    browser.wait(".link").click()
    browser.wait("dialog.drawer .answer")
    drawer = browser.wait("dialog.drawer")
    labels = [one.text for one in drawer.find_elements(By.CSS_SELECTOR, ".bar-label")]
    assert any(label.startswith(HOSTILE) for label in labels)
    assert any(label.startswith("__proto__") for label in labels)
    assert drawer.find_elements(By.TAG_NAME, "img") == []
    assert "broken" not in browser.title
    browser.shoot("drawer-markup")


def test_characters_of_a_name_that_are_not_seen_are_shown_by_their_codes(
    browser: Browser, server: Server
) -> None:
    names = {"team": "team", "team\u202e": "team⟨U+202E⟩", "team\U000e0041": "team⟨U+E0041⟩"}
    options = {
        "\x9bpay\u200d\u2066": "",
        "\ue000\u200bno\u00ad": "",
        "да\u200d\ufe0f\u3164\u034f": "",
        "👩\u200d🚀 क्\u200dष ✈\ufe0f": "",
    }
    asked = {"type": "choice", "instructions": "?", "options": options, "escape": False}
    decide(server, "x", dict.fromkeys(names, asked), project="unseen")
    browser.open(server.url, "drift?project=unseen")
    browser.settled()
    choices = browser.run(_CHOICES)
    assert {(name, f"{shown} (choice)") for name, shown in names.items()} <= set(
        map(tuple, choices)
    )
    browser.open(server.url, "decisions?project=unseen")
    browser.wait(".link").click()
    browser.wait("dialog.drawer .answer")
    text = browser.wait("dialog.drawer").text
    for shown in (
        "team⟨U+202E⟩",
        "⟨U+009B⟩pay⟨U+200D⟩⟨U+2066⟩",
        "⟨U+E000⟩⟨U+200B⟩no⟨U+00AD⟩",
        "да⟨U+200D⟩⟨U+FE0F⟩⟨U+3164⟩⟨U+034F⟩",
        "👩\u200d🚀 क्\u200dष ✈\ufe0f",
    ):
        assert shown in text


def test_an_answer_that_is_markup_is_shown_as_text(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    key = HOSTILE.replace('"', '\\"')
    body = '{"state": "x", "questions": {"%s": {"type": "%s", "instructions": "?"}}}'
    for kind in ("noul", key):  # an answer, then an error that names what was sent
        browser.fill("textarea", body % (key, kind))
        browser.wait("button", "Decide").click()
        browser.wait(".answer, .state.error", "<img")
    assert not browser.all("main img")
    assert "broken" not in browser.title


def test_no_request_goes_to_another_origin(browser: Browser, server: Server) -> None:
    browser.open(server.url)
    for view in VIEWS:
        browser.run("location.hash = arguments[0]", f"#/{view}")
        browser.wait(f"nav a[aria-current][href*={view}]")
        if view != "try":
            browser.settled()
    browser.wait("button", "Decide").click()
    browser.wait(".answer")
    _, requests = browser.drain()
    hosts = {urlsplit(one["url"]).netloc for one in requests if one["url"].startswith("http")}
    assert hosts == {urlsplit(server.url).netloc}
    paths = {urlsplit(one["url"]).path for one in requests if one["url"].startswith("http")}
    lists = {
        "/v1/projects",
        "/v1/questions",
        "/v1/activity",
        "/v1/keys",
        "/v1/batch",
        "/v1/budgets",
    }
    routes = {"/metrics", "/v1/audit", "/v1/calibration", "/v1/drift", "/v1/decide", *lists}
    assert paths == {"/dashboard", *routes}


def test_the_policy_refuses_what_the_page_does_not_do(chromium: Browser, server: Server) -> None:
    chromium.open(server.url, "try")
    assert chromium.run(_FETCH, ELSEWHERE) == "refused"
    assert chromium.run(_FETCH, f"{server.url}/health") == "answered"
    assert chromium.run(_MARKUP) == "TypeError"
    assert not chromium.all("#made")
    chromium.run("document.body.setAttribute('style', 'color: red')")
    console, _ = chromium.drain()
    for directive in ("connect-src", "TrustedHTML", "style-src"):
        assert any(directive in line for line in console), console


def test_the_policy_runs_no_other_script(chromium: Browser, server: Server) -> None:
    chromium.open(server.url, "try")
    with pytest.raises(JavascriptException, match="TrustedScript"):
        chromium.run(_INLINE)
    assert chromium.title == "Try a question · svc"
    chromium.drain()
