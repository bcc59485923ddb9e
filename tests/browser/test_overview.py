"""What was decided, cost and refused over time, and what the server says of itself."""

from __future__ import annotations

import re

import pytest

from tests.browser.chromium import Browser
from tests.browser.seeding import BUSY_DAYS
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

BUSY = "overview?project=busy&last=year"


def figures(browser: Browser) -> dict[str, str]:
    return dict(zip(browser.texts(".figure dt"), browser.texts(".figure strong"), strict=True))


def test_the_overview_counts_what_the_database_does(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview?last=hour")
    browser.settled()
    report = server.get("/v1/activity?last=hour&by=project").json()
    decisions = sum(step["decisions"] for step in report["steps"])
    assert figures(browser)["Decisions"] == f"{decisions:,}"
    names = [one["name"] for one in report["names"]]
    card = browser.wait(".card", "Projects with the most decisions first")
    assert [name for name in names if name in card.text] == names
    browser.wait("td a", "learned").click()
    browser.wait(".card", "Models with the most decisions first")
    assert "project=learned" in browser.url and "last=hour" in browser.url
    browser.shoot("overview")


def test_looking_counts_nothing(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview?last=hour")
    browser.settled()
    before = figures(browser)["Decisions"]
    for _ in range(3):
        browser.wait("button", "Show").click()
        browser.settled()
    assert figures(browser)["Decisions"] == before


def test_a_year_is_shown_with_cost_and_latency_by_model(browser: Browser, server: Server) -> None:
    browser.open(server.url, BUSY)
    browser.wait(".chart svg")
    report = server.get("/v1/activity?project=busy&last=year&by=model").json()
    shown = figures(browser)
    total = sum(step["decisions"] for step in report["steps"])
    assert shown["Decisions"] == f"{total:,}"
    assert shown["Failed"] == f"{sum(step['failed'] for step in report['steps']):,}"
    rows = browser.wait("table", "Models with the most decisions first").text
    for one in report["names"]:
        assert f"{one['name']} {one['decisions']:,} {one['failed']:,}" in rows
        assert f"{one['latency_ms']:.3g} ms" in rows
    assert "$0.40" in rows  # a thousand decisions of the dearer one
    questions = browser.wait("table", "Questions with the most decisions first").text
    assert "intent" in questions and "urgent" in questions
    browser.shoot("overview-year")


def test_the_charts_of_a_year_are_in_a_table_too(browser: Browser, server: Server) -> None:
    browser.open(server.url, BUSY)
    browser.wait(".chart svg")
    browser.wait("summary", "The charts as a table").click()
    assert len(browser.all("details[open] tbody tr")) == BUSY_DAYS


def test_columns_are_as_many_as_there_is_room_for(browser: Browser, server: Server) -> None:
    counts = {}
    for width in (390, 1400):
        browser.open(server.url, BUSY, width=width)
        browser.wait(".chart svg")
        drawn = browser.run(_COLUMNS)
        counts[width] = len(drawn)
        assert min(drawn) >= 3
    assert 20 < counts[390] < counts[1400] < 200


def test_a_time_without_decisions_says_so(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview?project=nobody&last=hour")
    browser.wait(".state", "No decisions in the last hour")
    browser.shoot("overview-empty")


def test_what_went_wrong_is_counted_by_whose_doing_it_was(
    browser: Browser, troubled: Server
) -> None:
    browser.open(troubled.url, "overview")
    browser.wait(".card", "Requests without an answer")
    browser.settled()
    shown = figures(browser)
    assert (shown["Decisions"], shown["Failed"]) == ("1", "1")
    assert (shown["Provider failures"], shown["Server errors"]) == ("1", "0")
    assert (shown["Refused requests"], shown["Quota left today"]) == ("1", "500")
    responses = browser.wait(".card", "Requests without an answer").text
    assert "502 provider failure" in responses and "404 not found" in responses
    assert "405" not in responses  # a status that was not sent
    browser.shoot("overview-trouble")


def test_the_server_is_asked_again_and_shows_its_rate(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview")
    browser.wait(".figure", "a minute now")
    shown = figures(browser)
    (decisions,) = re.findall(r"^svc_decisions_total (\d+)", server.get("/metrics").text, re.M)
    assert shown["Decisions here"] == f"{int(decisions):,}"
    assert all(shown[name].endswith("s") for name in ("p50", "p95", "p99", "Mean"))


_COLUMNS = """const chart = document.querySelector('.chart svg');
  return [...chart.querySelectorAll('.series-0')].map((one) => one.getBoundingClientRect().width)"""
