"""Each view, over data that a started server really has."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.by import By

from tests.browser.chromium import Browser
from tests.browser.seeding import LABELS, PAGED, RATED_DECISIONS
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

PAGE = 25
LEARNED = "calibration?project=learned&question=animal"
RATED = "calibration?project=rated&question=animal"
DRIFTING = "drift?project=drifting&question=animal"


def test_decisions_are_turned_page_by_page(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.settled()
    newest = browser.texts("td .link")
    assert len(newest) == PAGE and newest == sorted(newest, reverse=True)
    assert not browser.wait("button", "Newer").is_enabled()
    seen, page = newest, 1
    while browser.wait("button", "Older").is_enabled():
        page += 1
        browser.wait("button", "Older").click()
        browser.wait("[role=status]", f"Page {page}")
        seen = [*seen, *browser.texts("td .link")]
    assert len(set(seen)) == len(seen) >= PAGED and seen == sorted(seen, reverse=True)
    for earlier in range(page - 1, 0, -1):
        browser.wait("button", "Newer").click()
        browser.wait("[role=status]", f"Page {earlier}")
    assert browser.texts("td .link") == newest


def test_decisions_are_those_of_the_project_asked_for(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.shoot("decisions")
    browser.choose("select[name=project]", "learned")
    browser.wait("caption", "Decisions of learned")
    assert "project=learned" in browser.url
    browser.open(server.url, "decisions?project=unheard+of")
    browser.wait(".state", "No decisions of unheard of")
    assert browser.wait("select[name=project]").get_attribute("value") == "unheard of"
    browser.shoot("decisions-empty")


def test_a_drawer_shows_every_type_of_answer_as_bars(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.wait("tr", "3 more").find_element(By.CSS_SELECTOR, ".link").click()
    browser.wait("dialog.drawer .answer")
    drawer = browser.wait("dialog.drawer")
    parts = {part.text.split()[0]: part for part in browser.all("dialog.drawer .answer")}
    types = {
        key: part.find_element(By.TAG_NAME, "h3").text.split()[1:] for key, part in parts.items()
    }
    assert types == {
        "team": ["choice"],
        "urgency": ["score"],
        "refund": ["noul"],
        "topics": ["multi"],
        "amount": ["number"],
        "note": ["text"],
    }
    bars = {key: len(part.find_elements(By.TAG_NAME, "li")) for key, part in parts.items()}
    assert bars == {"team": 4, "urgency": 3, "refund": 2, "topics": 3, "amount": 1, "note": 1}
    for bar in drawer.find_elements(By.CSS_SELECTOR, ".bars li"):
        width = bar.find_element(By.CSS_SELECTOR, "rect.value").get_attribute("width") or ""
        assert bar.text.endswith(f"{float(width.rstrip('%')):.1f}%")
    browser.shoot("drawer")


def test_a_drawer_shows_what_else_an_answer_says(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.wait("tr", "Skipped").find_element(By.CSS_SELECTOR, ".link").click()
    browser.wait("dialog.drawer .answer")
    drawer = browser.wait("dialog.drawer").text
    for said in ("abstains", "Skipped", "rule 0", "Guaranteed", "Without this field of the state"):
        assert said in drawer
    browser.shoot("drawer-explained")


def test_an_answer_is_named_by_what_can_be_known(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    row = browser.wait("tr", "3 more")
    assert "urgency: Not urgent, a general remark, 95.9%" in row.text
    row.find_element(By.CSS_SELECTOR, ".link").click()
    browser.wait("dialog.drawer .answer")
    drawer = browser.wait("dialog.drawer").text
    assert re.search(r"level \d of 0.2, mean \d\.\d{3}$", drawer, re.MULTILINE)
    assert "extraction" not in drawer


def test_a_value_that_is_not_stored_has_its_type(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.wait("tr", "[redacted]").find_element(By.CSS_SELECTOR, ".link").click()
    browser.wait(".answer", "[redacted]")
    assert browser.texts(".answer:last-child .badge") == ["text"]


def test_calibration_is_drawn_before_and_after(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    browser.wait(".chart svg")
    report = server.get("/v1/calibration?project=learned&question=animal").json()
    for side in ("before", "after"):
        filled = [one for one in report[side]["bins"] if one["count"]]
        titles = browser.run(_TITLES, f".curve.{side} circle title")
        assert len(titles) == len(filled) >= 4
        assert f"accuracy {filled[-1]['accuracy']:.1%}" in titles[-1]
    assert browser.texts(".figure strong")[0] == str(LABELS)
    assert browser.find(".figure", f"t = {report['calibrator']['t']:.3f}")
    assert len(browser.all(".curve polyline")) == 2
    assert browser.find(".chart svg text", "Accuracy")
    assert browser.find(".note", "each label is judged by a fit that has not seen it")
    browser.shoot("calibration")


@pytest.mark.parametrize("dark", [False, True])
def test_rates_stand_with_their_intervals_beside_the_naive_share(
    browser: Browser, server: Server, dark: bool
) -> None:
    browser.open(server.url, RATED, dark=dark)
    browser.wait(".rate .interval")
    rates = server.get("/v1/rates?project=rated&question=animal").json()["rates"]
    drawn = browser.run(_TITLES, ".rate title")
    for one in rates:
        shown = f"{one['estimate']:.1%} ({one['low']:.1%} to {one['high']:.1%})"
        assert f"{one['option']}: {shown}, naive {one['naive']:.1%}" in drawn
        assert browser.find("td", shown)
    assert [one["option"] for one in rates if one["low"] < one["naive"] < one["high"]] == []
    assert browser.find(".card", f"Of {RATED_DECISIONS} decisions since")
    browser.shoot(f"rates-{'dark' if dark else 'light'}")


def test_few_bins_are_points_without_a_line(browser: Browser, server: Server) -> None:
    browser.open(server.url, "calibration?project=few&question=q")
    browser.wait(".chart svg")
    assert len(browser.all(".curve.before circle")) == 2
    assert browser.all(".curve.after circle") and not browser.all(".curve polyline")
    browser.shoot("calibration-few")


def test_the_diagram_stands_in_the_middle(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    browser.wait(".chart svg")
    left, right = browser.run(_MARGINS)
    assert abs(left - right) < 20 and min(left, right) >= 0


def test_the_thresholds_table_says_what_may_be_automated(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    part = browser.wait(".card", "What may be automated")
    rows = [row.text for row in part.find_elements(By.CSS_SELECTOR, "tbody tr")]
    report = server.get("/v1/calibration?project=learned&question=animal").json()["thresholds"]
    assert [row.split("%")[0] for row in rows] == [
        f"at least {one['target'] * 100:.1f}" for one in report
    ]
    assert str(report[0]["min_confidence"]) in rows[0]
    assert f"{report[0]['automated']:.1%}" in rows[0]
    assert report[-1]["reason"] in rows[-1]
    needed = [one["labels_needed"] for one in report]
    assert [row.count("about") for row in rows] == [0, 2, 0] and f"about {needed[1]}" in rows[1]


def test_why_accuracy_fell_is_said_where_it_did(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    browser.wait(".chart svg")
    assert "Why accuracy fell" not in browser.wait("main").text
    said = browser.run(
        "return [fallen(0.8, 0.79)?.textContent, fallen(0.8, 0.8), fallen(0.8, null)]"
    )
    assert said[0].startswith("Why accuracy fell by 1.0%: ") and said[1:] == [None, None]


def test_a_question_without_labels_says_so(browser: Browser, server: Server) -> None:
    browser.open(server.url, "calibration?question=team")
    browser.wait(".state", "No labels yet")
    browser.shoot("calibration-empty")


def test_a_question_never_asked_is_not_found(browser: Browser, server: Server) -> None:
    browser.open(server.url, "calibration?question=nobody+asked")
    browser.wait(".state.error", "was never asked a question")


def test_the_latest_question_is_shown_when_none_is_named(browser: Browser, server: Server) -> None:
    browser.open(server.url, "drift?project=drifting")
    browser.wait(".verdict")
    assert browser.wait("select[name=question]").get_attribute("value") == "animal"


@pytest.mark.parametrize("view", ["calibration", "drift"])
def test_a_question_that_was_skipped_is_not_the_latest(
    browser: Browser, server: Server, view: str
) -> None:
    browser.open(server.url, f"{view}?project=skipping")
    browser.settled()
    assert browser.wait("select[name=question]").get_attribute("value") == "answered"
    assert browser.run(_CHOICES, "question") == ["", "answered", "older", "refused"]


def test_projects_and_questions_are_picked_from_those_there_are(
    browser: Browser, server: Server
) -> None:
    browser.open(server.url, "drift?project=drifting")
    browser.wait(".verdict")
    there = [one["project"] for one in server.get("/v1/projects").json()["projects"]]
    assert browser.run(_CHOICES, "project") == ["", *(one for one in there if one != "default")]
    browser.choose("select[name=project]", "learned")
    browser.wait("main", "The question animal, of type choice")
    assert "project=learned" in browser.url
    browser.wait("nav a", "Decisions").click()  # what was picked goes along
    browser.wait("caption", "Decisions of learned")
    assert browser.run(_CHOICES, "question") == ["", "animal"]


def test_a_report_is_in_the_words_of_its_question(browser: Browser, server: Server) -> None:
    browser.open(server.url, "drift?question=urgency")
    browser.wait("h2", "How urgent is this ticket?")
    browser.wait(".bar-label", "0: Not urgent, a general remark")
    browser.open(server.url, "drift?question=refund")
    browser.wait(".verdict")
    assert browser.texts(".bar-label") == ["No", "Yes"]


def test_drift_is_drawn_week_by_week_with_its_flag(browser: Browser, server: Server) -> None:
    browser.open(server.url, DRIFTING)
    browser.wait(".verdict", "by more than chance: the mix")
    browser.wait(".curve.line circle.drifting")
    weeks = server.get("/v1/drift?project=drifting&question=animal").json()["weeks"]
    titles = browser.run(_TITLES, ".segment title")
    drawn = {
        f"{week['week']}, {top}: {week['mix'][top]:.1%}" for week in weeks for top in week["mix"]
    }
    assert set(titles) == drawn and len(weeks) == 7
    assert len(browser.all(".curve.line circle")) == 7
    latest, *earlier = browser.texts("tbody td:first-child")
    assert latest == f"{weeks[-1]['week']} drift"
    assert earlier == [week["week"] for week in reversed(weeks[:-1])]
    browser.shoot("drift")


def test_a_change_that_chance_can_make_is_no_drift(browser: Browser, server: Server) -> None:
    report = server.get("/v1/drift?project=wavering&question=animal").json()
    assert report["weeks"][-1]["drift"] and not report["test"]["alarm"]
    browser.open(server.url, "drift?project=wavering&question=animal")
    browser.wait(".verdict", "chance alone can do that")
    assert set(browser.texts(".badge")) == {"not sure"}  # one verdict, and the same in the table
    assert not browser.all("circle.drifting")
    browser.shoot("drift-not-sure")


def test_what_a_chart_shows_is_in_a_table_too(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    browser.wait("summary", "The diagram as a table").click()
    rows = browser.wait("details[open] table").text
    for title in browser.run(_TITLES, ".curve circle title"):
        assert all(share in rows for share in re.findall(r"[\d.]+%", title))
    browser.open(server.url, DRIFTING)
    browser.wait(".segment")
    rows = browser.wait("table", "By week").text
    for title in browser.run(_TITLES, ".segment title, .curve circle title"):
        assert re.findall(r"[\d.]+%", title)[0] in rows


def test_a_first_week_has_nothing_to_compare_with(browser: Browser, server: Server) -> None:
    browser.open(server.url, "drift?question=amount")
    browser.wait(".verdict", "One week so far")
    assert not browser.all(".chart, .bars")  # extracted values have no mix
    assert "75.0%" in browser.wait(".figure", "Mean confidence").text
    browser.open(server.url, "drift?question=team")
    browser.wait(".verdict", "One week so far")
    assert not browser.all(".chart") and "billing" in browser.texts(".bar-label")
    browser.shoot("drift-first-week")


_CHOICES = """return [...document.querySelector(`select[name=${arguments[0]}]`).options]
  .map((option) => option.value)"""
_MARGINS = """const place = document.querySelector('.chart svg').getBoundingClientRect();
  const drawn = [...document.querySelectorAll('.chart svg *')]
    .map((one) => one.getBoundingClientRect()).filter((one) => one.width);
  return [Math.min(...drawn.map((one) => one.left)) - place.left,
    place.right - Math.max(...drawn.map((one) => one.right))]"""
_TITLES = "return [...document.querySelectorAll(arguments[0])].map((title) => title.textContent)"
