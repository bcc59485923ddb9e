"""The box to try a request, and the line for a shell."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.browser.chromium import Browser
from tests.browser.seeding import SAMPLE
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

_HEIGHTS = """const box = document.querySelector('textarea');
  return [box.offsetHeight, box.scrollHeight, innerHeight]"""


def test_the_prefilled_question_is_answered(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    box = browser.wait("textarea").get_attribute("value")
    assert json.loads(box or "") == SAMPLE
    browser.wait("button", "Decide").click()
    browser.wait(".answer", "billing")
    assert len(browser.all(".answer")) == len(SAMPLE["questions"])
    browser.shoot("try")


def test_the_box_is_as_high_as_what_stands_in_it(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.wait("textarea")
    shown, needed, window = browser.run(_HEIGHTS)
    assert shown >= min(needed, window * 0.6) - 2 and shown <= window * 0.6 + 2
    browser.fill("textarea", "\n" * 15)
    shown, needed, _ = browser.run(_HEIGHTS)
    assert shown >= needed > 15 * 13


@pytest.mark.parametrize("key", ["", "svc_secret"])
def test_a_request_is_copied_as_a_line_for_a_shell(
    browser: Browser, server: Server, key: str
) -> None:
    browser.open(server.url, "try?as=json")
    browser.cdp("Page.bringToFront")  # the clipboard is for the window with the focus
    browser.cdp(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.run("if (arguments[0]) sessionStorage.setItem('svc-api-key', arguments[0])", key)
    text = '{"state": "it\'s $HOME `id` \\\\ \\"!\\"",\n "questions": {}}'
    browser.fill("textarea", text)
    browser.wait("button", "Copy as curl").click()
    browser.wait("[role=status]", "Copied")
    line = browser.run("return navigator.clipboard.readText()")
    assert "svc_secret" not in line
    sent = words(line, SVC_API_KEY="svc_of_the_shell")
    assert sent[:2] == ["-sS", f"{server.url}/v1/decide"] and sent[-2:] == ["--data-raw", text]
    assert ("Authorization: Bearer svc_of_the_shell" in sent) is bool(key)


def test_a_line_that_cannot_be_copied_is_shown(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    browser.wait("button", "Copy as curl").click()
    assert browser.wait(".copied pre").text.startswith("curl -sS 'http")


def words(line: str, **variables: str) -> list[str]:
    """What a shell would give to curl."""
    script = "curl() { printf '%s\\0' \"$@\"; }; " + line
    ended = subprocess.run(["sh", "-c", script], env=variables, capture_output=True, check=True)
    return ended.stdout.decode().split("\0")[:-1]


def test_what_is_wrong_with_a_request_is_said(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.fill("textarea", '{"state": "x", ')
    browser.wait("button", "Decide").click()
    browser.wait(".state.error", "This is not JSON")
    browser.fill("textarea", '{"state": "x", "questions": {}}')
    browser.wait("button", "Decide").click()
    browser.wait(".state.error", "questions")
    browser.shoot("try-error")
    browser.fill("textarea", '{"state": "x", "questions": {"q": {"type": "no such type"}}}')
    browser.wait("button", "Decide").click()
    browser.wait(".state.error", "no such type")
    assert browser.texts(".state.error h2") == ["The request is not valid"]
    browser.fill("textarea", json.dumps(SAMPLE))
    browser.wait("button", "Try again").click()
    browser.wait(".answer", "billing")
