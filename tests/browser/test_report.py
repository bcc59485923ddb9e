"""The page that `svc report --html` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.evals.page import write_page
from svc.evals.runs import Run, SavedRow
from svc.evals.sets import load_set
from tests.browser.axe import faults
from tests.browser.chromium import Browser
from tests.evals.samples import TEAM, scored, write_set

pytestmark = pytest.mark.browser

RUN = Run("@own/a-model-with-a-rather-long-name", "auto", True, "svc-1.3.0")
LONG = "a label of so many words that it takes more than one line"
STATE = {"subject": "Charged twice", "message": "Please refund the second payment. " * 6}


@pytest.fixture
def written(tmp_path: Path) -> str:
    """The address of a page of two sets: one with a small matrix, one with a big one."""
    write_set(tmp_path, "team", TEAM, [{"state": STATE, "label": "billing"}])
    content = load_set(str(tmp_path), "team").rows[0].digest
    pairs = [("billing", "billing")] * 9 + [("technical", "technical"), ("technical", LONG)]
    pairs += [(LONG, "billing"), (LONG, LONG)]
    small = [
        SavedRow(RUN, "team", n, "q", content, scored(*pair, 0.5 + n / 30))
        for n, pair in enumerate(pairs, 1)
    ]
    big = [
        SavedRow(RUN, "many", n, "q", "", scored(f"label {n % 12}", f"label {n % 11}", n / 60))
        for n in range(1, 60)
    ]
    path = tmp_path / "report.html"
    write_page(str(path), [(RUN, {"team": small, "many": big})], str(tmp_path))
    return path.as_uri()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_report_can_be_read_by_everybody(
    browser: Browser, written: str, width: int, dark: bool
) -> None:
    browser.visit(written, width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert faults(browser) == []
    browser.shoot(f"report-{width}{'-dark' * dark}")


def test_the_figures_of_a_wide_page_are_all_in_sight(browser: Browser, written: str) -> None:
    browser.visit(written, width=1400)
    hidden = """return [...document.querySelectorAll('.wide')]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)"""
    assert browser.run(hidden) == []


def test_no_figure_of_the_report_is_in_hover_text_alone(browser: Browser, written: str) -> None:
    browser.visit(written)
    assert browser.run("return document.querySelectorAll('title:not(head *), [title]').length") == 0
    browser.wait("summary", "The diagram as a table").click()
    assert "confidence" in browser.wait("details[open] table", "right").text
    assert LONG in browser.wait(".matrix th[scope=row]", LONG).text
