"""The view of jobs: how far each is, its results, and that it can be cancelled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.test_rules import keep, looks
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import ScriptedProvider, Silent, always
from tests.web.models import ANIMAL

pytestmark = pytest.mark.browser

_SAVED = """window.saved = []; const offered = offer;
offer = (blob, name) => blob.text().then((text) => window.saved.push([name, text]));"""


def hand_in(server: Server, rows: int, **fields: object) -> str:
    given = [{"id": f"r{n}", "state": f"Cat {n}."} for n in range(1, rows + 1)]
    body = {"questions": {"animal": ANIMAL}, "rows": given, **fields}
    return str(server.post(body, "/v1/batch").json()["id"])


def wait_for(server: Server, job: str, status: str) -> None:
    until = time.monotonic() + 2 * WAIT_S
    while server.get(f"/v1/batch/{job}").json()["status"] != status:
        assert time.monotonic() < until, server.log
        time.sleep(0.1)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with a job that is done, one that was cancelled, and two that no model answers."""
    db: Path = tmp_path_factory.mktemp("jobs") / "svc.db"
    with ScriptedProvider(always(Silent())) as provider:
        settings = {"SVC_PROVIDER_SILENT_URL": provider.url, "SVC_MASTER_KEY": "for jobs"}
        with Server(db, "--demo", **settings) as server:
            jobs = {"done": hand_in(server, 3)}
            jobs["failing"] = hand_in(server, 2, model="@demo/nothing")
            wait_for(server, jobs["done"], "done")
            wait_for(server, jobs["failing"], "done")
            for name in ("cancelled", "kept", "running"):
                jobs[name] = hand_in(server, 1_200, model="@silent/m")
            server.post({}, f"/v1/batch/{jobs['cancelled']}/cancel")
            yield server, jobs


Busy = tuple[Server, dict[str, str]]


@looks
def test_the_view_breaks_no_rule(browser: Browser, busy: Busy, width: int, dark: bool) -> None:
    browser.open(busy[0].url, "jobs", width=width, dark=dark)
    browser.wait("caption", "Jobs of default")
    browser.settled()
    keep(browser, "jobs", width, dark)


def test_without_jobs_it_says_how_to_hand_one_in(browser: Browser, busy: Busy) -> None:
    browser.open(busy[0].url, "jobs?project=nobody")
    browser.wait(".state", "No jobs of nobody")
    assert browser.find(".state", "svc batch submit")


def test_each_job_says_how_it_stands(browser: Browser, busy: Busy) -> None:
    server, jobs = busy
    browser.open(server.url, "jobs")
    browser.wait("caption", "Jobs of default, the newest first")
    rows = {row.split()[0]: row for row in browser.texts("tbody tr")}
    assert list(rows) == [jobs[n] for n in ("running", "kept", "cancelled", "failing", "done")]
    assert "3 of 3 answered" in rows[jobs["done"]]
    assert "0 of 2 answered" in rows[jobs["failing"]]
    assert "cancelled" in rows[jobs["cancelled"]]
    assert "Cancel" not in rows[jobs["done"]]


def test_results_are_saved_as_a_file(browser: Browser, busy: Busy) -> None:
    server, jobs = busy
    browser.open(server.url, "jobs")
    browser.wait("caption")
    browser.run(_SAVED)
    browser.wait(f"#Results-{jobs['done']}").click()
    browser.wait("[role=status]", f"Results of {jobs['done']} saved")
    saved = browser.until(lambda: browser.run("return window.saved"), "nothing was saved")
    expected = server.get(f"/v1/batch/{jobs['done']}/results").text
    assert saved == [[f"{jobs['done']}.jsonl", expected]]


def test_a_job_is_cancelled_once_that_is_confirmed(browser: Browser, busy: Busy) -> None:
    server, jobs = busy
    browser.open(server.url, "jobs")
    browser.wait("caption")
    browser.run("window.said = []; confirm = (text) => said.push(text) > 1")
    for _ in range(2):
        browser.wait(f"#Cancel-{jobs['running']}").click()
    browser.wait_gone(f"#Cancel-{jobs['running']}")
    first, _ = browser.run("return window.said")
    assert first.startswith(f"Cancel {jobs['running']}? 1,200 rows will not be asked.")
    assert server.get(f"/v1/batch/{jobs['running']}").json()["status"] == "cancelled"
    assert browser.wait(f"#Cancel-{jobs['kept']}")
