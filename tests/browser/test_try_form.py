"""The form to try a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.assets import recipes
from tests.browser.chromium import Browser
from tests.browser.seeding import SAMPLE
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

STATE = ".try-state textarea"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server for one test, whose decisions and labels are its own."""
    with Server(tmp_path / "svc.db", "--demo") as started:
        yield started


def written(browser: Browser) -> Any:
    """The request that the form has become."""
    return json.loads(browser.run("return tried"))


def test_a_recipe_is_tried_without_writing_json(browser: Browser, own: Server) -> None:
    browser.open(own.url, "try")
    browser.choose("select[name=recipe]", "sentiment")
    browser.fill(STATE, "The parcel came late and broken, I am very angry.")
    browser.wait(".note", "Sent as text.")
    browser.wait("button", "Decide").click()
    browser.wait(".answer")
    asked = recipes()["sentiment"]["questions"]
    assert written(browser)["questions"] == asked
    assert [part.text.split()[0] for part in browser.all(".answer h3")] == list(asked)
    browser.shoot("try-recipe")


def test_every_recipe_stays_as_it_is_in_the_form(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    for name, recipe in recipes().items():
        browser.choose("select[name=recipe]", name)
        assert written(browser)["questions"] == recipe["questions"], name
        assert browser.run("return fitsForm(tried)"), name


def test_project_and_model_go_with_the_request(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try?project=tried")
    browser.fill("input[name=model]", "@demo/lexical")
    browser.wait("button", "Decide").click()
    browser.wait(".answer")
    sent = written(browser)
    assert (sent["project"], sent["model"]) == ("tried", "@demo/lexical")
    assert sent["state"] == SAMPLE["state"] and sent["questions"] == SAMPLE["questions"]
    assert "tried" in browser.wait(".facts").text


def test_a_question_is_put_together_from_fields(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    browser.wait("button", "Add a question").click()
    part = "details.try-question[open]"
    browser.fill(f"{part} input", "mood")
    browser.choose(f"{part} select[name=type]", "score")
    areas = browser.run(_AREAS)
    assert [label.split(",")[0] for label in areas] == ["Question", "Levels"]
    browser.fill(f"{part} .field:nth-of-type(1) textarea", "How is the mood?")
    browser.fill(f"{part} .choices textarea", "bad\n\n good ")
    browser.wait(f"{part} summary", "Further fields").click()
    browser.fill(f"{part} .further-fields textarea", '{"min_confidence": 0.7}')
    assert written(browser)["questions"]["mood"] == {
        "type": "score",
        "instructions": "How is the mood?",
        "levels": ["bad", "good"],
        "min_confidence": 0.7,
    }
    browser.fill(f"{part} input", "team")  # the key of another one
    assert not browser.run("return document.querySelector('main form').checkValidity()")
    browser.wait(f"{part} button", "Remove this question").click()
    assert written(browser)["questions"] == SAMPLE["questions"]


def test_the_form_and_the_json_are_one_request(browser: Browser, server: Server) -> None:
    browser.open(server.url, "try")
    browser.fill(STATE, '{"plan": "none"}')
    browser.wait(".note", "Sent as JSON.")
    browser.wait("nav a", "JSON").click()
    box = browser.wait("#request").get_attribute("value") or ""
    assert json.loads(box) == {**SAMPLE, "state": {"plan": "none"}}
    browser.fill("#request", json.dumps({**SAMPLE, "state": "A text."}))
    browser.wait("nav a", "Form").click()
    assert browser.wait(STATE).get_attribute("value") == "A text."
    browser.wait("nav a", "JSON").click()
    long_number = json.dumps({**SAMPLE, "state": {"order": 12345678901234567891}})
    for request in ('{"state": "x", "model": ["a", "b"], "questions": {}}', long_number):
        browser.fill("#request", request)
        browser.wait("nav a", "Form").click()
        browser.wait(".note", "what the form has no fields for")
        assert browser.wait("#request").get_attribute("value") == request
        browser.wait("nav a", "JSON").click()


def test_a_tried_answer_becomes_a_label(browser: Browser, own: Server) -> None:
    browser.open(own.url, "try")
    browser.wait("button", "Decide").click()
    browser.wait(".answer .right-or-not button", "Yes").click()
    browser.wait("[role=status]", "Saved: billing. The question has 1 label")
    browser.wait(".facts a", "dec_").click()
    browser.wait("dialog.drawer [role=status]", "Labelled: billing")
    found = re.search(r"decision=(dec_\w+)", browser.url)
    assert found
    (given,) = own.get(f"/v1/decisions/{found[1]}").json()["labels"]
    assert (given["question"], given["label"], given["sampled"]) == ("team", "billing", "other")


def test_the_state_is_in_the_request_of_the_decision_alone(browser: Browser, own: Server) -> None:
    browser.open(own.url, "try")
    browser.fill(STATE, "zebrafish at the door")
    browser.wait("button", "Decide").click()
    browser.wait(".answer .right-or-not button", "Yes").click()
    browser.wait("[role=status]", "Saved: ")
    browser.wait("nav a", "Decisions").click()
    browser.settled()
    _, requests = browser.drain()
    holding = [one["url"] for one in requests if "zebrafish" in json.dumps(one)]
    assert holding == [f"{own.url}/v1/decide"]
    stored = browser.run("return JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert "zebrafish" not in stored and "zebrafish" not in own.log


_AREAS = """return [...document.querySelectorAll('details.try-question[open] > .field > span')]
  .map((one) => one.textContent)"""
