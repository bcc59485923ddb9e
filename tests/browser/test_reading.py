"""Narrow pages, dark ones, the keyboard, and a server that does not answer."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.test_views import DRIFTING, LEARNED
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

NARROW = 400  # pixels
VIEWS = ("overview", "decisions", "label", LEARNED, DRIFTING, "try")
TEXTS = "h1, h2, td, th, dt, dd, a, button, label, caption, .note, .badge, .bar-label, .bar-text"
_WIDE = """return [...document.querySelectorAll('body *')]
  .filter((one) => one.checkVisibility() && !one.closest('.unseen, thead, .skip, pre'))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.outerHTML.slice(0, 120))"""
_COLOURS = """
const behind = (one) => { // the nearest colour that is not transparent
  const colour = getComputedStyle(one).backgroundColor;
  return colour !== 'rgba(0, 0, 0, 0)' || !one.parentElement ? colour : behind(one.parentElement);
};
return [...document.querySelectorAll(arguments[0])]
  .filter((one) => one.checkVisibility() && one.textContent.trim() && !one.disabled)
  .map((one) => [getComputedStyle(one).color, behind(one), one.outerHTML.slice(0, 120)])"""
_SERIES = """const probe = document.body.appendChild(document.createElement('i'));
const names = ['surface', ...Array(6).keys().map((at) => `series-${at}`), 'series-other', 'accent',
  'muted', 'warn', 'bad'];
return names.map((name) => {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
})"""


def show(browser: Browser, server: Server, view: str, width: int = 1200, dark: bool = False) -> str:
    """Open a view and wait for its data; the view's name."""
    browser.open(server.url, view, width=width, dark=dark)
    if view == "try":
        browser.wait("button", "Decide").click()
        browser.wait(".answer")
    else:
        browser.settled()
    return view.partition("?")[0]


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(...)` (WCAG 2.2)."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_cut_off_on_a_narrow_page(browser: Browser, server: Server, view: str) -> None:
    name = show(browser, server, view, width=NARROW)
    assert browser.run("return document.documentElement.scrollWidth") == NARROW
    assert browser.run(_WIDE) == []
    browser.shoot(f"{name}-{NARROW}")


def test_rows_become_cards_on_a_narrow_page(browser: Browser, server: Server) -> None:
    show(browser, server, LEARNED, width=NARROW)
    cell = "return getComputedStyle(document.querySelector('tbody td'), '::before').content"
    assert browser.run(cell) == '"Probabilities"'


def test_a_drawer_fits_on_a_narrow_page(browser: Browser, server: Server) -> None:
    show(browser, server, "decisions", width=NARROW)
    browser.wait(".link").click()
    browser.wait("dialog.drawer .answer")
    assert browser.run(_WIDE) == []
    browser.shoot(f"drawer-{NARROW}")


def test_a_page_of_decisions_is_not_long_on_a_phone(browser: Browser, server: Server) -> None:
    show(browser, server, "decisions", width=390)
    assert len(browser.all("tbody tr")) == 25
    assert browser.run("return document.documentElement.scrollHeight") < 3_600


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_charts_stand_out(browser: Browser, server: Server, dark: bool) -> None:
    browser.open(server.url, "try", dark=dark)
    behind, *colours = browser.run(_SERIES)
    assert len(colours) == 11
    assert [colour for colour in colours if contrast(colour, behind) < 3] == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_text_stands_out_in_light_and_dark(
    browser: Browser, server: Server, view: str, dark: bool
) -> None:
    name = show(browser, server, view, dark=dark)
    colours = browser.run(_COLOURS, TEXTS)
    assert len(colours) > 10
    assert [found for found in colours if contrast(*found[:2]) < 4.5] == []
    page = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(page) < 0.1) is dark
    if dark:
        browser.shoot(f"{name}-dark")


def test_everything_is_reached_with_the_keyboard(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview")
    browser.settled()
    browser.tab_to(".skip")
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    browser.reload()
    browser.settled()
    browser.tab_to("nav a[href^='#/decisions']")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press(Keys.ENTER)
    browser.wait("h1", "Decisions")
    browser.settled()
    browser.tab_to(".link")
    browser.press(Keys.ENTER)
    browser.wait("dialog.drawer")
    browser.tab_to("dialog button")
    browser.press(Keys.ESCAPE)
    browser.wait_gone("dialog.drawer")
    assert browser.run("return document.activeElement.matches('.link')")


def test_turning_a_page_keeps_the_place_of_the_keyboard(browser: Browser, server: Server) -> None:
    show(browser, server, "decisions")
    browser.run("[...document.querySelectorAll('main nav button')].at(-1).focus()")
    browser.press(Keys.ENTER)
    browser.wait("[role=status]", "Page 2")
    browser.press(Keys.TAB)
    assert browser.run("return document.activeElement.matches('.link')")


def test_a_request_is_sent_from_its_box_with_the_keyboard(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?as=json")
    browser.tab_to("textarea")
    browser.press(Keys.CONTROL, Keys.ENTER)
    browser.wait(".answer")


def test_a_slow_server_is_waited_for(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    network(browser, latency=1_500)
    browser.wait("nav a", "Decisions").click()
    browser.wait(".state", "Loading")
    browser.shoot("loading")
    browser.settled()
    browser.wait("caption", "Decisions of default")
    network(browser)


def test_a_view_that_was_left_does_not_come_back(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    network(browser, latency=1_000)
    browser.wait("nav a", "Decisions").click()
    browser.wait(".state", "Loading")
    browser.wait("nav a", "Overview").click()
    browser.wait(".figure", "Decisions")
    assert browser.texts("h1") == ["Overview"]
    assert not browser.find("caption", "Decisions of default")
    network(browser)


def test_a_server_out_of_reach_is_tried_again(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    network(browser, offline=True)
    browser.wait("nav a", "Drift").click()
    browser.wait(".state.error", "The server cannot be reached")
    browser.shoot("error-unreachable")
    network(browser)
    browser.wait("button", "Try again").click()
    browser.wait(".verdict")


def network(browser: Browser, *, latency: int = 0, offline: bool = False) -> None:
    """Make every request of the page take `latency` milliseconds more, or fail."""
    browser.cdp("Network.enable")
    browser.cdp(
        "Network.emulateNetworkConditions",
        offline=offline,
        latency=latency,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )


def test_an_answer_of_something_in_between_is_not_taken(chromium: Browser, server: Server) -> None:
    chromium.open(server.url, "try")
    chromium.run("window.fetch = async () => new Response('<html>sign in</html>')")
    chromium.wait("nav a", "Decisions").click()
    chromium.wait(".state.error", "could not be read")
    chromium.drain()  # the console says why
