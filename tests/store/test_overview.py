"""Which projects there are."""

from __future__ import annotations

import pytest

from svc.store import Database, Overview
from svc.store.decisions import Decisions
from tests.store.lending import plans
from tests.store.records import record


@pytest.mark.parametrize("only", [None, "shop"])
def test_a_page_of_projects_reads_the_sums_of_those_alone(
    database: Database, only: str | None
) -> None:
    for project in ("shop", "desk"):
        Decisions(database).add(record(project=project))
    (plan,) = plans(database, lambda lent: Overview(lent).projects(only, "", 1))
    assert "USING COVERING INDEX activity_by_project" in plan
    assert "TEMP B-TREE" not in plan


def test_a_page_begins_after_a_project_and_ends_with_the_limit(database: Database) -> None:
    for project in ("shop", "desk", "zoo"):
        Decisions(database).add(record(project=project))
    overview = Overview(database)
    assert [one.project for one in overview.projects(None, "desk", 1)] == ["shop"]
    assert [one.project for one in overview.projects("zoo", "", 9)] == ["zoo"]
    assert overview.projects("desk", "desk", 9) == []
