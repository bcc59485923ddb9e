"""Drift and broken promises of real decisions and labels are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from svc.hooks.events import of_alarm
from svc.hooks.noticing import Noticing
from svc.learning import Learner, Reporter
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.schemas.feedback import Feedback
from svc.store import Budgets, HookAlarms, Labels, QuestionVersions, ReviewDue, Weeks
from svc.store.decisions import Decisions
from tests.hooks.conftest import World
from tests.store.records import record

NOUL = TYPES["noul"].load({"type": "noul", "instructions": "Is the parcel late?"})
HOUR_S = 3_600
WEEK_S = 7 * 24 * HOUR_S


class Shop:
    """A project with decisions and labels, and a hook for everything."""

    def __init__(
        self,
        world: World,
        learner: Learner,
        decisions: Decisions,
        reporter: type[Reporter] = Reporter,
    ) -> None:
        self.world, self._learner, self._decisions = world, learner, decisions
        database, clock = world.database, world.clock
        versions = QuestionVersions(database)
        self._noticing = Noticing(
            world.hooks,
            world.events,
            HookAlarms(database, of_alarm, clock),
            Budgets(database, clock),
            ReviewDue(database, clock),
            versions,
            reporter(versions, Labels(database), Weeks(database), clock),
            clock,
        )
        world.add()

    def decide(self, count: int, top: str = "true") -> list[str]:
        p = 0.9 if top == "true" else 0.1
        asked = AskedQuestion("late", NOUL.digest, NOUL.definition_json, {"p": [p]}, top, 0.9)
        return [self._decisions.add(record(asked, project="shop")) for _ in range(count)]

    def label(self, count: int, truth: bool) -> None:
        for one in self.decide(count):
            self._learner.label(Feedback(one, "late", truth))

    def told(self) -> list[Any]:
        """The events of one more look."""
        self._noticing.look()
        self._noticing.look_closely()
        self._noticing.tell()
        rows = self.world.database.rows("SELECT body FROM hook_events WHERE settled_at IS NULL")
        for event in self.world.events.due():
            self.world.events.delivered(event)
        return [json.loads(row[0]) for row in rows]


class FailingReporter(Reporter):
    """One that fails as long as it is told to."""

    fails = False

    def week_tests(self, project: str, key: str) -> Any:
        if self.fails:
            raise ValueError("sum(colors) must be less than 1000000000")
        return super().week_tests(project, key)

    def promises(self, project: str, key: str) -> Any:
        if self.fails:
            raise MemoryError
        return super().promises(project, key)


@pytest.fixture(params=[Reporter])
def shop(world: World, request: pytest.FixtureRequest) -> Iterator[Shop]:
    decisions = Decisions(world.database, world.clock)
    versions, labels = QuestionVersions(world.database), Labels(world.database)
    with closing(Learner(decisions, versions, labels)) as learner:
        yield Shop(world, learner, decisions, request.param)


def test_a_promise_that_labels_speak_against_is_broken(shop: Shop) -> None:
    shop.label(60, truth=True)
    assert shop.told() == []
    shop.label(30, truth=False)
    events = shop.told()
    assert {one["type"] for one in events} == {"promise.broken"}
    data = events[0]["data"]
    assert (data["project"], data["question"], data["target"]) == ("shop", "late", 0.9)
    assert data["labels"] == 90 and "parcel" not in json.dumps(events)
    assert shop.told() == []


def test_answers_that_change_from_week_to_week_drift(shop: Shop) -> None:
    shop.decide(30)
    assert shop.told() == []
    shop.world.now += WEEK_S
    shop.decide(30, "false")
    assert shop.told() == []
    shop.world.now += WEEK_S
    (event,) = shop.told()
    assert event["type"] == "drift"
    assert event["data"]["question"] == "late" and event["data"]["test"]["mix"]["alarm"]
    assert "parcel" not in json.dumps(event)
    shop.world.now += WEEK_S / 7
    assert shop.told() == []


@pytest.mark.parametrize("shop", [FailingReporter], indirect=True)
def test_a_report_that_fails_keeps_no_other_event_waiting(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process ended each time, and no hook of any project was told of anything."""
    shop.label(60, truth=True)
    monkeypatch.setattr(FailingReporter, "fails", True)
    assert shop.told() == []
    failed = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert failed == ["a report on a question failed, of which hooks may have been told"] * 2


@pytest.mark.parametrize("shop", [FailingReporter], indirect=True)
def test_a_promise_is_remembered_while_its_report_fails(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.label(60, truth=True)
    assert shop.told() == []
    with monkeypatch.context() as patch:
        patch.setattr(FailingReporter, "fails", True)
        for _ in range(3):
            shop.world.now += 2 * HOUR_S
            assert shop.told() == []
        shop.label(30, truth=False)
        assert shop.told() == []
    # It is asked again without another label.
    assert {one["type"] for one in shop.told()} == {"promise.broken"}
    monkeypatch.setattr(FailingReporter, "fails", True)
    for _ in range(3):
        shop.world.now += 2 * HOUR_S
        assert shop.told() == []
    monkeypatch.setattr(FailingReporter, "fails", False)
    assert shop.told() == []


@pytest.mark.parametrize("shop", [FailingReporter], indirect=True)
def test_drift_that_goes_on_is_told_once_also_where_a_report_failed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.decide(30)
    shop.world.now += WEEK_S
    shop.decide(30, "false")
    shop.world.now += WEEK_S
    assert [one["type"] for one in shop.told()] == ["drift"]
    with monkeypatch.context() as patch:
        patch.setattr(FailingReporter, "fails", True)
        shop.world.now += 24 * HOUR_S
        assert shop.told() == []
    shop.world.now += 24 * HOUR_S
    assert shop.told() == []
