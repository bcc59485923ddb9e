"""The rules of axe-core, on every view, in both schemes and at two widths; a picture of each."""

from __future__ import annotations

import pytest

from tests.browser.axe import faults
from tests.browser.chromium import Browser
from tests.browser.conftest import Keys
from tests.browser.seeding import HOSTILE
from tests.browser.test_views import DRIFTING, LEARNED
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

VIEWS = {
    "overview": "overview?project=busy&last=year",
    "overview-all": "overview?last=hour",
    "overview-empty": "overview?project=nobody&last=hour",
    "decisions": "decisions",
    "jobs": "jobs",
    "label": "label",
    "calibration": LEARNED,
    "calibration-empty": "calibration?question=team",
    "drift": DRIFTING,
    "drift-words": "drift?question=urgency",
    "try": "try",
    "try-json": "try?as=json",
    "keys": "keys",
    "missing": "calibration?question=nobody+asked",
}
_WIDE = "return document.documentElement.scrollWidth"

looks = pytest.mark.parametrize(
    ("width", "dark"), [(390, False), (390, True), (1400, False), (1400, True)]
)


def keep(browser: Browser, name: str, width: int, dark: bool) -> None:
    """No rule is broken, nothing is cut off, and there is a picture."""
    browser.shoot(f"{name}-{width}{'-dark' * dark}")
    assert faults(browser) == []
    assert browser.run(_WIDE) == width


@looks
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_breaks_no_rule(
    browser: Browser, server: Server, name: str, width: int, dark: bool
) -> None:
    browser.open(server.url, VIEWS[name], width=width, dark=dark)
    if name.startswith("try"):
        browser.wait("button", "Decide").click()
        browser.wait(".answer")
    browser.settled()
    keep(browser, name, width, dark)


@looks
def test_a_drawer_breaks_no_rule(browser: Browser, server: Server, width: int, dark: bool) -> None:
    browser.open(server.url, "decisions", width=width, dark=dark)
    browser.wait("tr", "3 more").find_element("css selector", ".link").click()
    browser.wait("dialog.drawer .right-or-not button", "No").click()
    keep(browser, "drawer", width, dark)


@looks
def test_names_that_are_markup_break_no_rule(
    browser: Browser, server: Server, width: int, dark: bool
) -> None:
    browser.open(server.url, "decisions", width=width, dark=dark)
    browser.choose("select[name=project]", HOSTILE)
    browser.wait("caption", "Decisions of <img")
    keep(browser, "decisions-markup", width, dark)


@looks
def test_the_dialog_for_a_key_breaks_no_rule(
    browser: Browser, guarded: tuple[Server, Keys], width: int, dark: bool
) -> None:
    browser.open(guarded[0].url, "overview", width=width, dark=dark)
    browser.wait("#key-dialog[open]")
    keep(browser, "key", width, dark)
