"""Each view, over data that a started server really has."""

from __future__ import annotations

import json
import re

import pytest
from selenium.webdriver.common.by import By

from tests.browser.chromium import Browser
from tests.browser.seeding import LABELS, PAGED, SAMPLE
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

PAGE = 25
LEARNED = "calibration?project=learned&question=animal"
DRIFTING = "drift?project=drifting&question=animal"


def test_the_overview_shows_what_the_metrics_say(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview")
    browser.settled()
    shown = dict(zip(browser.texts(".figure dt"), browser.texts(".figure strong"), strict=True))
    metrics = server.get("/metrics").text
    (decisions,) = re.findall(r"^svc_decisions_total (\d+)", metrics, re.MULTILINE)
    assert shown["Decisions"] == decisions
    assert all(shown[name].endswith("%") for name in ("From the cache", "Abstained"))
    assert all(shown[name].endswith("s") for name in ("p50", "p95", "p99", "Mean"))
    assert "200" in browser.wait(".card", "Responses by status").text
    browser.shoot("overview")


def test_the_overview_is_read_again_and_shows_the_rate(browser: Browser, server: Server) -> None:
    browser.open(server.url, "overview")
    browser.wait(".figure", "a minute now")


def test_decisions_are_turned_page_by_page(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.settled()
    newest = browser.texts("button.link")
    assert len(newest) == PAGE and newest == sorted(newest, reverse=True)
    assert not browser.wait("button", "Newer").is_enabled()
    seen = newest
    for page in range(2, (PAGED + 1) // PAGE + 2):
        browser.wait("button", "Older").click()
        browser.wait("[role=status]", f"Page {page}")
        seen = [*seen, *browser.texts("button.link")]
    assert not browser.wait("button", "Older").is_enabled()
    assert len(set(seen)) == len(seen) >= PAGED and seen == sorted(seen, reverse=True)
    for page in (2, 1):
        browser.wait("button", "Newer").click()
        browser.wait("[role=status]", f"Page {page}")
    assert browser.texts("button.link") == newest


def test_decisions_are_those_of_the_project_asked_for(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.shoot("decisions")
    browser.fill("input[name=project]", "learned")
    browser.wait("button", "Show").click()
    browser.wait("caption", "Decisions of learned")
    assert "project=learned" in browser.url
    browser.fill("input[name=project]", "unheard of")
    browser.wait("button", "Show").click()
    browser.wait(".state", "No decisions of unheard of")
    browser.shoot("decisions-empty")


def test_a_drawer_shows_every_type_of_answer_as_bars(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.wait("tr", "3 more").find_element(By.CSS_SELECTOR, "button.link").click()
    drawer = browser.wait("dialog.drawer")
    parts = {part.text.split()[0]: part for part in browser.all("dialog.drawer .answer")}
    types = {key: part.find_element(By.CSS_SELECTOR, ".badge").text for key, part in parts.items()}
    assert types == {
        "team": "choice",
        "urgency": "score",
        "refund": "noul",
        "topics": "multi",
        "amount": "extraction",
        "note": "extraction",
    }
    bars = {key: len(part.find_elements(By.TAG_NAME, "li")) for key, part in parts.items()}
    assert bars == {"team": 4, "urgency": 3, "refund": 2, "topics": 3, "amount": 1, "note": 1}
    for bar in drawer.find_elements(By.CSS_SELECTOR, ".bars li"):
        width = bar.find_element(By.CSS_SELECTOR, "rect.value").get_attribute("width") or ""
        assert bar.text.endswith(f"{float(width.rstrip('%')):.1f}%")
    browser.shoot("drawer")


def test_a_drawer_shows_what_else_an_answer_says(browser: Browser, server: Server) -> None:
    browser.open(server.url, "decisions")
    browser.wait("tr", "Skipped").find_element(By.CSS_SELECTOR, "button.link").click()
    drawer = browser.wait("dialog.drawer").text
    for said in ("abstains", "Skipped", "rule 0", "Guaranteed", "Without this field of the state"):
        assert said in drawer
    browser.shoot("drawer-explained")


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
    browser.shoot("calibration")


def test_the_thresholds_table_says_what_may_be_automated(browser: Browser, server: Server) -> None:
    browser.open(server.url, LEARNED)
    part = browser.wait(".card", "What may be automated")
    rows = [row.text for row in part.find_elements(By.CSS_SELECTOR, "tbody tr")]
    report = server.get("/v1/calibration?project=learned&question=animal").json()["thresholds"]
    assert [row.split("%")[0] for row in rows] == [
        f"at least {one['target'] * 100:.1f}" for one in report
    ]
    assert f"{report[0]['min_confidence']:.2f}" in rows[0]
    assert f"{report[0]['automated']:.1%}" in rows[0]
    assert report[-1]["reason"] in rows[-1]


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
    assert browser.wait("input[name=question]").get_attribute("value") == "animal"
    assert browser.run("return document.querySelector('datalist').options[0].value") == "animal"


def test_drift_is_drawn_week_by_week_with_its_flag(browser: Browser, server: Server) -> None:
    browser.open(server.url, DRIFTING)
    browser.wait(".verdict", "drifts away from the weeks before")
    browser.wait(".curve.line circle.drifting")
    weeks = server.get("/v1/drift?project=drifting&question=animal").json()["weeks"]
    titles = browser.run(_TITLES, ".segment title")
    drawn = {
        f"{week['week']}, {top}: {week['mix'][top]:.1%}" for week in weeks for top in week["mix"]
    }
    assert set(titles) == drawn and len(weeks) == 7
    assert len(browser.all(".curve.line circle")) == 7
    assert browser.texts("tbody td:first-child") == [week["week"] for week in reversed(weeks)]
    browser.shoot("drift")


def test_a_first_week_has_nothing_to_compare_with(browser: Browser, server: Server) -> None:
    browser.open(server.url, "drift?question=amount")
    browser.wait(".verdict", "nothing to compare with")
    assert not browser.all(".segment")  # extracted values have no mix
    browser.shoot("drift-first-week")


def test_the_prefilled_question_is_answered(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    box = browser.wait("textarea").get_attribute("value")
    assert json.loads(box or "") == SAMPLE
    browser.wait("button", "Decide").click()
    browser.wait(".answer", "billing")
    assert len(browser.all(".answer")) == len(SAMPLE["questions"])
    browser.shoot("try")


def test_what_is_wrong_with_a_request_is_said(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    browser.fill("textarea", '{"state": "x", ')
    browser.wait("button", "Decide").click()
    browser.wait(".state.error", "This is not JSON")
    browser.fill("textarea", '{"state": "x", "questions": {}}')
    browser.wait("button", "Decide").click()
    browser.wait(".state.error", "questions")
    browser.shoot("try-error")
    browser.fill("textarea", json.dumps(SAMPLE))
    browser.wait("button", "Try again").click()
    browser.wait(".answer", "billing")


_TITLES = "return [...document.querySelectorAll(arguments[0])].map((title) => title.textContent)"
