"""Costly requests of one key, one after the other, so that others get theirs."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any, cast

import pytest
from flask import Flask, g, request
from marshmallow import Schema, post_load
from marshmallow.fields import String
from werkzeug.test import TestResponse

from svc import limits
from svc.costly import PAUSE, CostlyWork
from svc.deadline import Deadline
from svc.errors import RateLimited, Timeout
from svc.learning import Learner, ReviewDesk, Reviewers
from svc.learning.learner import Counted, Taken, Turn
from svc.schemas import Feedback
from svc.sharing import NamedLocks
from svc.store import QuestionVersions
from svc.store.decisions import AuditPage, Decisions
from svc.store.wanted import ANY
from svc.web import decorators, feedback, label_turns, review
from svc.web.auth import Access
from svc.web.decorators import SCRAPES, UNNOTICED_S
from svc.web.filters import Filters
from svc.web.pages import Pages
from tests.web.conftest import Start

WAIT_S = 10.0


class Anything(Schema):
    text = String()


class Slow:
    """Stands for whoever finds pages and stores labels; each takes until the test lets it go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._changed, self._go = threading.Condition(), threading.Event()

    def page(self, *_: Any) -> AuditPage:
        self._wait()
        return AuditPage([], None)

    def report(self) -> str:
        self._wait()
        return ""

    def label(self, given: Feedback, project: str | None, turn: Turn) -> Counted:
        with turn():
            self._wait()
        return Counted(1, False)

    def skip(self, *_: Any) -> None:
        self._wait()

    def label_all(self, *_: Any) -> Taken:
        self._wait()
        return Taken(0, [])

    def until(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.began) >= count, WAIT_S)

    def finish(self) -> None:
        self._go.set()

    def _wait(self) -> None:
        with self._changed:
            self.began.append(g.access.key_id)
            self._changed.notify_all()
        assert self._go.wait(WAIT_S)


def app_of(slow: Slow) -> Flask:
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = 2**20
    pages = Pages(cast(Decisions, slow), cast(QuestionVersions, None))

    def admit() -> None:
        g.access, g.deadline = (
            Access(request.headers["key"]),
            Deadline(float(request.headers["within"])),
        )

    def page() -> str:
        with pages.page("p", Filters(ANY), 1, None):
            return ""

    app.before_request(admit)
    app.get("/page")(page)
    app.get("/report", endpoint="report")(decorators.report(slow.report))
    app.get("/brief", endpoint="brief")(decorators.brief(slow.report))
    app.get("/metrics", endpoint="metrics")(decorators.scrape(slow.report))
    app.register_error_handler(RateLimited, lambda error: (error.message, error.status))
    app.register_blueprint(
        feedback.blueprint(
            cast(Learner, slow), lambda view: view, label_turns.LabelTurns(NamedLocks())
        )
    )
    desks = (cast(ReviewDesk, slow), cast(Reviewers, slow))
    app.register_blueprint(review.blueprint(*desks))
    return app


def others_get_theirs(method: str, path: str, body: Any = None) -> None:
    """While a key has a request under way its next one waits, and that of another key does not."""
    slow = Slow()
    app = app_of(slow)

    def ask(key: str, within_s: float = WAIT_S) -> threading.Thread:
        headers = {"key": key, "within": str(within_s)}
        send = partial(app.test_client().open, path, method=method, json=body, headers=headers)
        thread = threading.Thread(target=send)
        thread.start()
        return thread

    first = ask("many")
    slow.until(1)
    # It waits for its turn until its deadline.
    ask("many", 0.05).join(WAIT_S / 2)
    assert slow.began == ["many"]
    other = ask("one")
    slow.until(2)
    assert slow.began == ["many", "one"]
    slow.finish()
    for thread in (first, other):
        thread.join(WAIT_S)


def test_a_key_that_asks_for_many_pages_leaves_room_for_those_of_others() -> None:
    others_get_theirs("GET", "/page")


def test_after_a_page_that_took_long_its_key_waits() -> None:
    class Long(Slow):
        def page(self, *_: Any) -> AuditPage:
            used.append(1.0)
            return AuditPage([], None)

    used: list[float] = []
    pauses: list[float] = []
    turns = CostlyWork(
        0,
        lambda: sum(used),
        lambda: 0.0,
        lambda _, seconds: pauses.append(seconds),
        unnoticed_s=UNNOTICED_S,
    )
    pages = Pages(cast(Decisions, Long()), cast(QuestionVersions, None), turns)
    with Flask(__name__).test_request_context():
        for key in ("one", "other", "one"):
            g.access, g.deadline = Access(key), Deadline(WAIT_S)
            with pages.page("p", Filters(ANY), 1, None):
                pass
    assert pauses == [0.0, 0.0, pytest.approx(PAUSE * (1.0 - UNNOTICED_S))]


def test_a_page_waits_for_those_of_other_keys_until_its_deadline() -> None:
    slow = Slow()
    app = app_of(slow)
    made = [
        threading.Thread(target=app.test_client().get, args=("/page",), kwargs={"headers": sent})
        for sent in ({"key": str(n), "within": str(WAIT_S)} for n in range(limits.PAGES_AT_ONCE))
    ]
    for thread in made:
        thread.start()
    slow.until(limits.PAGES_AT_ONCE)
    app.config["PROPAGATE_EXCEPTIONS"] = True
    late: list[BaseException] = []

    def ask() -> None:
        try:
            app.test_client().get("/page", headers={"key": "late", "within": "0.05"})
        except Timeout as error:
            late.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    waiting.join(WAIT_S / 2)
    assert len(late) == 1
    slow.finish()
    for thread in (*made, waiting):
        thread.join(WAIT_S)


def test_while_a_costly_view_waits_other_bodies_of_its_key_are_read() -> None:
    slow = Slow()
    app = app_of(slow)

    def costly(value: Any) -> str:
        return slow.report()

    app.post("/costly")(decorators.body(Anything, held=True)(costly))
    app.post("/other")(decorators.body(Anything)(lambda value: "read"))
    sent = {"text": "x" * 2 * decorators.SMALL_BYTES}

    def send(path: str, within_s: float) -> TestResponse:
        headers = {"key": "many", "within": str(within_s)}
        return app.test_client().post(path, json=sent, headers=headers)

    first = threading.Thread(target=send, args=("/costly", WAIT_S))
    first.start()
    slow.until(1)
    assert send("/other", WAIT_S / 2).text == "read"
    # What it keeps in memory is not there twice.
    assert send("/costly", 0.05).status_code == 500 and slow.began == ["many"]
    slow.finish()
    first.join(WAIT_S)


def test_bodies_of_a_key_are_read_one_after_the_other_and_those_of_others_beside_them() -> None:
    """Twenty that were read at once, with 650 questions each, had others wait for a second."""
    slow = Slow()
    app = app_of(slow)
    reading: list[str] = []

    class Waiting(Anything):
        @post_load
        def _wait(self, data: Any, **_: Any) -> Any:
            reading.append(g.access.key_id)
            slow.report()
            return data

    app.post("/read")(decorators.body(Waiting)(lambda value: "read"))
    sent = {"text": "x" * 2 * decorators.TINY_BYTES}

    def send(key: str) -> None:
        headers = {"key": key, "within": str(WAIT_S)}
        assert app.test_client().post("/read", json=sent, headers=headers).text == "read"

    threads = [threading.Thread(target=send, args=(key,)) for key in ("many", "many", "other")]
    for thread in threads:
        thread.start()
    slow.until(2)
    assert sorted(reading) == ["many", "other"]
    slow.finish()
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(reading) == ["many", "many", "other"]


def test_a_key_that_asks_for_many_reports_leaves_room_for_those_of_others() -> None:
    others_get_theirs("GET", "/report")


def test_a_key_that_reads_large_decisions_leaves_room_for_others() -> None:
    others_get_theirs("GET", "/brief")


def test_a_key_that_asks_for_metrics_again_and_again_leaves_room_for_others() -> None:
    others_get_theirs("GET", "/metrics")


def test_threads_are_left_where_a_key_asks_for_metrics_many_times_at_once() -> None:
    """They are the same that tell whether the worker lives."""
    slow = Slow()
    app = app_of(slow)
    headers = {"key": "many", "within": str(WAIT_S)}
    asked: list[TestResponse] = []

    def ask() -> None:
        asked.append(app.test_client().get("/metrics", headers=headers))

    threads = [threading.Thread(target=ask) for _ in range(SCRAPES + 3)]
    for thread in threads:
        thread.start()
    give_up_at = time.monotonic() + WAIT_S
    while len(asked) < 3 and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert [one.status_code for one in asked] == [429] * 3
    assert asked[0].text == "this API key has 4 requests for metrics under way"
    slow.finish()
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(one.status_code for one in asked) == [200] * SCRAPES + [429] * 3


@pytest.mark.parametrize(
    "path",
    [
        "/v1/activity",
        "/v1/calibration?question=q",
        "/v1/decisions/dec_0123456789abcdef01234567",
        "/v1/drift?question=q",
        "/v1/keys",
        "/v1/projects",
        "/v1/questions",
        "/v1/rates?question=q",
        "/v1/review?question=q&reviewer=ann",
        "/v1/review/disagreements?question=q",
        "/metrics",
    ],
)
def test_every_report_waits_for_its_turn(start: Start, path: str) -> None:
    answer = start(deadline_s=0.0).test_client().get(path)
    assert (answer.status_code, "deadline" in answer.text) == (504, True)


def test_labels_in_bulk_of_one_key_are_stored_one_request_after_the_other() -> None:
    line = {"ref": "r", "labels": {"q": 1}}
    others_get_theirs(
        "POST", "/v1/feedback/bulk", {"labels": [line] * (label_turns.FEW_LABELS + 1)}
    )


def test_of_a_key_one_worker_at_a_time_stores_many_labels() -> None:
    """With eight workers others waited for eight transactions in a row."""
    turns = label_turns.LabelTurns(NamedLocks())
    with turns.of_many("one", 2, Deadline(WAIT_S)):
        assert not elsewhere(turns, "one")
        assert elsewhere(turns, "other")
    assert elsewhere(turns, "one")


def elsewhere(turns: label_turns.LabelTurns, key_id: str) -> bool:
    """Whether another process, forked now, gets a turn of the key at once."""
    if not (pid := os.fork()):
        try:
            with turns.of_many(key_id, 2, Deadline(0.2)):
                os._exit(0)
        except Timeout:
            os._exit(7)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


DECISION = "dec_01M8C29MR75A3A30XZBM3AKKJV"


def test_decisions_that_one_key_labels_are_read_one_after_the_other() -> None:
    others_get_theirs(
        "POST", "/v1/feedback", {"decision_id": DECISION, "question": "q", "label": 1}
    )


def test_decisions_that_one_key_gives_back_are_read_one_after_the_other() -> None:
    sent = {"decision_id": DECISION, "question": "q", "reviewer": "ann"}
    others_get_theirs("POST", "/v1/review/skip", sent)
