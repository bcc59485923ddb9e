"""What happened is found in the database, and told with names and figures alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from svc.errors import NotFound
from svc.hooks.events import of_alarm
from svc.hooks.noticing import Noticing
from svc.store import (
    NANO,
    Account,
    ApiKeys,
    Budget,
    Budgets,
    Claim,
    HookAlarms,
    HookKind,
    Job,
    Jobs,
    JobStatus,
    LabelledQuestion,
    Per,
    Scope,
)
from tests.hooks.conftest import World

DAY_S = 86_400.0
HOUR_S = 3_600.0
JOB = "job_0123456789abcdef01234567"


class Reports:
    """Stands for the reporter: questions with what is reported of them."""

    def __init__(self) -> None:
        self.promised: dict[str, Any] = {}
        self.tests: dict[str, Any] = {}
        self.looks = self.promise_looks = 0
        self.versions: dict[str, LabelledQuestion] = {}

    def promises(self, project: str, key: str) -> Any:
        self.promise_looks += 1
        if key not in self.promised:
            raise NotFound("no such question")
        return {"labels": 40, "min_labels": 30, "thresholds": [self.promised[key]]}

    def week_tests(self, project: str, key: str) -> Any:
        self.looks += 1
        return self.tests[key]

    def promise(self, key: str, threshold: Any, question_id: int = 7) -> None:
        """Labels come, and this is what they promise from now on."""
        self.promised[key] = threshold
        before = self.versions.get(key, LabelledQuestion(0, 40, 40, None))
        now = before._replace(question_id=question_id, revision=before.revision + 1)
        self.versions[key] = now

    def labelled(self, project: str, labels: int, most: int) -> dict[str, LabelledQuestion]:
        return dict(self.versions)

    def recent(self, project: str, since_ms: int, most: int) -> dict[str, int]:
        return dict.fromkeys(self.tests, 7)


class Queue:
    """Stands for the review queue."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def questions(self, project: str, most: int) -> list[str]:
        return self.keys[:most]


class Watched:
    """A project with a hook for everything, and what is noticed of it."""

    def __init__(self, world: World) -> None:
        self.world, self.reports, self.queue = world, Reports(), Queue()
        self.hook = world.add()
        self.budgets = Budgets(world.database, world.clock)
        alarms = HookAlarms(world.database, of_alarm, world.clock)
        parts: Any = (self.budgets, self.queue, self.reports, self.reports)
        self.noticing = Noticing(world.hooks, world.events, alarms, *parts, world.clock)

    def told(self, later_s: float = 0.0) -> list[Any]:
        """The events that one more look brings."""
        self.world.now += later_s
        before = len(self._bodies())
        self.noticing.look()
        self.is_done = self.noticing.look_closely()
        self.noticing.tell()
        return list(map(json.loads, self._bodies()[before:]))

    def _bodies(self) -> list[str]:
        rows = self.world.database.rows("SELECT body FROM hook_events ORDER BY seq")
        return [row[0] for row in rows]


@pytest.fixture
def watched(world: World) -> Watched:
    return Watched(world)


def test_nothing_happens_nothing_is_told(watched: Watched) -> None:
    assert watched.told() == watched.told(DAY_S) == []


def test_a_job_that_ended_is_told_with_its_figures(watched: Watched) -> None:
    now_ms = int(watched.world.now * 1000)
    jobs = Jobs(watched.world.database, watched.world.clock)
    times = {"created_at": now_ms, "expires_at": now_ms + 1_000}
    jobs.add(Job(id=JOB, project="shop", api_key=None, rows=3, **times))
    assert watched.told() == []
    jobs.end(JOB, JobStatus.CANCELLED)
    (event,) = watched.told()
    assert event == {
        "type": "batch.done",
        "timestamp": f"{datetime.fromtimestamp(watched.world.now, UTC):%Y-%m-%dT%H:%M:%S}.000Z",
        "data": {
            "project": "shop",
            "id": JOB,
            "status": "cancelled",
            "rows": 3,
            "answered": 0,
            "failed": 0,
            "cost_usd": 0.0,
            "created_at": now_ms,
            "ended_at": now_ms,
        },
    }
    assert watched.told() == watched.told(100 * DAY_S) == []


def budget(subject: str = "shop", scope: Scope = Scope.PROJECT, **fields: Any) -> Budget:
    return Budget(scope, subject, Per.DAY, 10 * NANO, **fields)


def spend(watched: Watched, dollars: float, one: Budget) -> None:
    """Have calls that cost so much paid by a budget today."""
    account = Account(one.scope, one.subject, one.per, one.per.period(watched.world.now))
    watched.budgets.claim([Claim(account, int(dollars * NANO), 0)])


def test_where_many_jobs_ended_a_close_look_comes_again_soon(watched: Watched) -> None:
    now_ms = int(watched.world.now * 1000)
    jobs = Jobs(watched.world.database, watched.world.clock)
    times = {"created_at": now_ms, "expires_at": now_ms + 1_000}
    watched.world.now += 1
    for number in range(450):
        jobs.add(Job(id=f"job_{number}", project="shop", api_key=None, rows=3, **times))
        jobs.end(f"job_{number}", JobStatus.DONE)
    # Each look tells of two hundred.
    assert len(watched.told()) == 400 and not watched.is_done
    assert len(watched.told()) == 50 and watched.is_done


def test_a_budget_is_told_at_its_level_and_when_it_is_exhausted(watched: Watched) -> None:
    watched.budgets.set(budget())
    spend(watched, 7.9, budget())
    assert watched.told() == []
    spend(watched, 0.1, budget())
    (event,) = watched.told()
    assert event["data"] == {
        "project": "shop",
        "level": "warning",
        "scope": "project",
        "subject": "shop",
        "per": "day",
        "period": event["data"]["period"],
        "limit_usd": 10.0,
        "spent_usd": 8.0,
        "reserved_usd": 0.0,
        "hard": True,
        "warn_at": 0.8,
    }
    spend(watched, 2.0, budget())
    (event,) = watched.told()
    assert event["data"]["level"] == "exhausted"
    assert watched.told() == watched.told(60.0) == []


def test_a_call_that_does_not_fit_has_the_budget_exhausted(watched: Watched) -> None:
    watched.budgets.set(budget())
    spend(watched, 9.0, budget())
    period = Per.DAY.period(watched.world.now)
    account = Account(Scope.PROJECT, "shop", Per.DAY, period)
    watched.budgets.claim([Claim(account, 0, 0, 2 * NANO, 2 * NANO)])
    assert [one["data"]["level"] for one in watched.told()] == ["warning", "exhausted"]


def test_a_soft_budget_is_exhausted_at_its_limit(watched: Watched) -> None:
    soft = budget(hard=False)
    watched.budgets.set(soft)
    spend(watched, 9.9, soft)
    assert [one["data"]["level"] for one in watched.told()] == ["warning"]
    spend(watched, 0.2, soft)
    assert [one["data"]["level"] for one in watched.told()] == ["exhausted"]


def test_the_next_period_and_another_limit_are_told_anew(watched: Watched) -> None:
    watched.budgets.set(budget())
    spend(watched, 8.0, budget())
    assert len(watched.told()) == 1
    raised = Budget(Scope.PROJECT, "shop", Per.DAY, 20 * NANO)
    watched.budgets.set(raised)
    assert watched.told() == []
    spend(watched, 9.0, raised)
    assert len(watched.told()) == 1
    watched.world.now += DAY_S
    assert watched.told() == []
    spend(watched, 16.0, raised)
    assert len(watched.told()) == 1


def test_budgets_of_other_projects_and_of_keys_for_all_are_not_told(watched: Watched) -> None:
    keys = ApiKeys(watched.world.database)
    own, every = keys.create("a", 60, "shop"), keys.create("b", 60)
    assert own is not None and every is not None
    all_of_them = [budget("bank"), budget(own.id, Scope.KEY), budget(every.id, Scope.KEY)]
    for one in all_of_them:
        watched.budgets.set(one)
        spend(watched, 8.0, one)
    assert [one["data"]["subject"] for one in watched.told()] == [own.id]


def test_a_review_is_due_once_until_the_queue_was_empty(watched: Watched) -> None:
    watched.queue.keys = ["team", "topic"]
    (event,) = watched.told()
    assert event["type"] == "review.due"
    assert event["data"] == {"project": "shop", "questions": ["team", "topic"]}
    assert watched.told(HOUR_S) == []
    watched.queue.keys = []
    assert watched.told() == []
    watched.queue.keys = ["team"]
    assert len(watched.told()) == 1


def test_a_review_is_due_once_an_hour_at_most(watched: Watched) -> None:
    count = 0
    for n in range(120):
        watched.queue.keys = ["team"] if n % 2 else []
        count += len(watched.told(60.0))
    assert count == 2


def threshold(min_confidence: float | None, since: int = 0) -> dict[str, Any]:
    return {
        "target": 0.9,
        "min_confidence": min_confidence,
        "automated": None,
        "reason": None,
        "labels_needed": 0 if min_confidence else 12,
        "since": since,
    }


def test_a_promise_that_was_never_made_is_not_broken(watched: Watched) -> None:
    watched.reports.promise("team", threshold(None))
    assert watched.told() == watched.told(60.0) == []


def test_a_promise_that_is_not_kept_any_more_is_told_once(watched: Watched) -> None:
    watched.reports.promise("team", threshold(0.7))
    assert watched.told() == []
    watched.reports.promise("team", threshold(None))
    (event,) = watched.told(60.0)
    assert event["type"] == "promise.broken"
    assert event["data"] == {
        "project": "shop",
        "question": "team",
        "target": 0.9,
        "min_confidence": None,
        "labels": 40,
        "labels_needed": 12,
    }
    assert watched.told(2 * HOUR_S) == watched.told(2 * HOUR_S) == []
    watched.reports.promise("team", threshold(0.8))
    assert watched.told(60.0) == []
    watched.reports.promise("team", threshold(None))
    assert len(watched.told(60.0)) == 1


def test_a_promise_stays_broken_until_it_is_made_anew(watched: Watched) -> None:
    watched.reports.promise("team", threshold(0.7))
    assert watched.told() == []
    watched.reports.promise("team", threshold(None))
    for _ in range(5):
        watched.told(2 * HOUR_S)
    watched.world.add()
    assert [one["type"] for one in watched.told()] == ["promise.broken"]


def test_a_fall_of_accuracy_breaks_a_promise_that_nobody_had_seen(watched: Watched) -> None:
    watched.reports.promise("team", threshold(None, since=20))
    assert len(watched.told()) == 1


def test_a_question_that_is_worded_anew_breaks_no_promise(watched: Watched) -> None:
    watched.reports.promise("team", threshold(0.7))
    assert watched.told() == []
    watched.reports.promise("team", threshold(None), question_id=8)
    assert watched.told(60.0) == []


def test_promises_are_computed_anew_only_where_labels_came(watched: Watched) -> None:
    for key in ("team", "topic"):
        watched.reports.promise(key, threshold(0.7))
    watched.world.now -= watched.world.now % HOUR_S
    # What was noted by the first look is known to the second one.
    assert watched.told() == watched.told(60.0) == []
    before = watched.reports.promise_looks
    for _ in range(50):
        assert watched.told(60.0) == []
    assert watched.reports.promise_looks == before
    watched.reports.promise("team", threshold(None))
    assert [one["type"] for one in watched.told(60.0)] == ["promise.broken"]
    assert watched.reports.promise_looks == before + 1


def test_a_look_computes_few_promises_and_notes_none_before_all_are_known(watched: Watched) -> None:
    """Events of other projects wait for it, and each label of an ordinary key may ask for one."""
    keys = [f"q{n}" for n in range(25)]
    for key in keys:
        watched.reports.promise(key, threshold(None, since=20))
    for looks, is_done, events in ((10, False, 0), (20, False, 0), (25, True, 25), (25, True, 0)):
        assert len(watched.told(10.0)) == events
        assert (watched.reports.promise_looks, watched.is_done) == (looks, is_done)


def test_promises_that_go_on_changing_are_computed_in_turn(watched: Watched) -> None:
    keys = [f"q{n}" for n in range(25)]
    for key in keys:
        watched.reports.promise(key, threshold(0.7))
    for _ in range(3):
        assert watched.told(10.0) == []
    watched.reports.promise("q24", threshold(None))
    for key in keys[:24]:
        watched.reports.promise(key, threshold(0.8))
    broken = 0
    for _ in range(3):
        # Labels go on coming for all others.
        broken += len(watched.told(10.0))
        for key in keys[:24]:
            watched.reports.promise(key, threshold(0.8))
        assert not watched.is_done
    assert broken == 1


def test_a_fit_alone_can_break_a_promise(watched: Watched) -> None:
    watched.reports.promise("team", threshold(0.7))
    assert watched.told() == watched.told() == []
    watched.reports.promised["team"] = threshold(None)
    fitted = watched.reports.versions["team"]._replace(tried=41, fitted_at=1)
    watched.reports.versions["team"] = fitted
    assert len(watched.told()) == 1


def week(name: str, finished: bool, alarm: bool) -> dict[str, Any]:
    return {"week": name, "finished": finished, "mix": None, "alarm": alarm}


def test_drift_is_looked_for_once_a_day_and_told_once(watched: Watched) -> None:
    tests = [week("2026-W47", True, True)]
    watched.reports.tests = {"team": tests, "calm": [week("2026-W47", True, False)]}
    (event,) = watched.told()
    assert event["type"] == "drift"
    assert event["data"] == {"project": "shop", "question": "team", "test": tests[0]}
    assert watched.told(60.0) == [] and watched.reports.looks == 2
    assert watched.told(DAY_S) == [] and watched.reports.looks == 4


def test_drift_that_ended_and_comes_again_is_told_again(watched: Watched) -> None:
    for alarm, count in ((True, 1), (False, 0), (True, 1), (True, 0)):
        watched.reports.tests = {"team": [week("2026-W47", True, alarm)]}
        assert len(watched.told(DAY_S)) == count


def test_what_nobody_was_told_of_meanwhile_is_looked_at_before_it_is_told(world: World) -> None:
    watched = Watched(world)
    watched.reports.tests = {"team": [week("2026-W47", True, True)]}
    assert len(watched.told()) == 1
    world.events.disable(watched.hook, "gone")
    world.now += 10 * DAY_S
    watched.reports.tests = {"team": [week("2026-W49", True, False)]}
    world.add()
    assert watched.told() == []


def test_a_hook_hears_of_what_it_was_added_for(world: World) -> None:
    watched = Watched(world)
    world.hooks.remove(world.hooks.all()[0].id)
    world.add("https://example.com/", HookKind.REVIEW_DUE)
    watched.queue.keys = ["team"]
    watched.reports.tests = {"team": [week("2026-W47", True, True)]}
    assert [one["type"] for one in watched.told()] == ["review.due"]
    assert watched.reports.looks == 0


def test_no_event_is_longer_than_a_few_kilobytes(watched: Watched) -> None:
    watched.queue.keys = [200 * "ä" for _ in range(1_000)]
    watched.told()
    assert len(watched._bodies()[0].encode()) < 10_000
