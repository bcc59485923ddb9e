"""A week is tested for hooks once it is over."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from svc.errors import NotFound
from svc.learning import Reporter
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.store import Labels, QuestionVersions, Weeks
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.records import record

NOUL = TYPES["noul"].load({"type": "noul", "instructions": "Is it late?"})
WEEK_S = 7 * 86_400


class Weekly:
    def __init__(self, database: Database) -> None:
        self.now = datetime(2026, 11, 2, 12, tzinfo=UTC).timestamp()
        self._decisions = Decisions(database, self.clock)
        versions = QuestionVersions(database)
        self._reporter = Reporter(versions, Labels(database), Weeks(database), self.clock)

    def clock(self) -> float:
        return self.now

    def decide(self, yes: int, no: int) -> None:
        for top, count, p in (("true", yes, 0.9), ("false", no, 0.1)):
            asked = AskedQuestion("q", NOUL.digest, NOUL.definition_json, {"p": [p]}, top, 0.9)
            for _ in range(count):
                self._decisions.add(record(asked))

    @property
    def tests(self) -> list[tuple[Any, ...]]:
        found = self._reporter.week_tests("default", "q")
        return [(one["week"], one["finished"], one["alarm"]) for one in found]

    @property
    def reported(self) -> tuple[Any, ...]:
        one = self._reporter.drift("default", "q", 8)["test"]
        return (one["week"], one["finished"], one["alarm"])


@pytest.fixture
def weekly(database: Database) -> Weekly:
    return Weekly(database)


def test_a_week_that_is_over_is_tested_though_the_next_has_begun(weekly: Weekly) -> None:
    weekly.decide(30, 0)
    assert weekly.tests == []
    weekly.now += WEEK_S
    weekly.decide(0, 30)
    assert weekly.tests == [("2026-W45", True, False)]
    assert weekly.reported == ("2026-W46", False, True)
    weekly.now += WEEK_S
    assert weekly.tests == [("2026-W46", True, True)]
    assert weekly.reported == ("2026-W46", True, True)
    weekly.decide(1, 0)
    assert weekly.tests == [("2026-W46", True, True)]
    weekly.now += 2 * WEEK_S
    assert weekly.tests == []


def test_what_was_never_asked_has_no_tests(weekly: Weekly) -> None:
    with pytest.raises(NotFound):
        assert weekly.tests
