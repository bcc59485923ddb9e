"""A question type that the page has never heard of is drawn all the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from werkzeug.serving import make_server

from tests.browser.chromium import Browser
from tests.preferring import PreferringModel
from tests.questions.colour import known
from tests.web.conftest import Start, start
from tests.web.models import replying

pytestmark = pytest.mark.browser
__all__ = ["start"]  # the fixture

REQUEST = {
    "state": "A leaf.",
    "questions": {"q": {"type": "colour", "instructions": "Which colour?"}},
}


@pytest.fixture
def url(start: Start) -> Iterator[str]:
    """Where a server in this process listens, whose types have one more."""
    with known():
        server = make_server(
            "127.0.0.1", 0, start(replying(PreferringModel({"green": 8.0}))), threaded=True
        )
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.port}"
        server.shutdown()
        thread.join()
        server.server_close()


def test_its_answer_is_shown_with_its_probabilities(browser: Browser, url: str) -> None:
    browser.open(url, "try?as=json")
    browser.fill("textarea", json.dumps(REQUEST))
    browser.wait("button", "Decide").click()
    answer = browser.wait(".answer", "green")
    assert browser.wait(".answer .badge").text == "colour"
    assert "80.0%" in answer.text and "blue" in answer.text
    browser.open(url, "decisions")
    browser.wait("td", "green, 80.0%")
