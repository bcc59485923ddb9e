"""A bound of what a project's decisions fill."""

from __future__ import annotations

import pytest

from svc.store import ProjectFull
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.project_sizes import ProjectSizes
from tests.store.records import record


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def used(sizes: ProjectSizes) -> int:
    (one,) = sizes.all()
    return one.bytes


def test_a_project_stores_no_more_than_it_may_and_others_go_on(database: Database) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    decisions.add(record())
    sizes.set("default", 5_000)
    first = used(sizes)
    assert 600 < first < 1_000
    for count in range(2, 100):
        try:
            decisions.add(record())
        except ProjectFull as error:
            assert '"default"' in error.message and "svc project set" in error.message
            break
        assert used(sizes) == count * first
    assert used(sizes) <= 5_000 < used(sizes) + first
    assert len(decisions.page("default", 100).entries) == used(sizes) // first
    decisions.add(record(project="other"))
    sizes.set("default", 5_001)
    assert used(sizes) == len(decisions.page("default", 100).entries) * first
    sizes.set("default", None)
    decisions.add(record())
    assert sizes.all() == []


def test_a_full_project_is_known_before_any_model_is_asked(database: Database) -> None:
    clock = Clock()
    sizes = ProjectSizes(database, clock)
    sizes.check("default")
    sizes.set("default", 10)
    sizes.check("default")
    clock.now = 1.0
    with pytest.raises(ProjectFull):
        sizes.check("default")
    sizes.check("other")
