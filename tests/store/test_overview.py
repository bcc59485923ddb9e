"""Which projects there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from svc.store import Database, Labels, Overview
from svc.store.decisions import Decisions
from tests.store.lending import plans
from tests.store.records import asked, record
from tests.store.test_labels import Book


@pytest.mark.parametrize("only", [None, "shop"])
def test_a_page_of_projects_reads_the_sums_of_those_alone(
    database: Database, only: str | None
) -> None:
    for project in ("shop", "desk"):
        Decisions(database).add(record(project=project))
    (plan,) = plans(database, lambda lent: Overview(lent).projects(only, "", 1))
    assert plan.startswith("SEARCH projects USING PRIMARY KEY")
    assert "activity" not in plan
    assert "TEMP B-TREE" not in plan


def test_a_page_begins_after_a_project_and_ends_with_the_limit(database: Database) -> None:
    for project in ("shop", "desk", "zoo"):
        Decisions(database).add(record(project=project))
    overview = Overview(database)
    assert [one.project for one in overview.projects(None, "desk", 1)] == ["shop"]
    assert [one.project for one in overview.projects("zoo", "", 9)] == ["zoo"]
    assert overview.projects("desk", "desk", 9) == []


def test_a_project_counts_its_decisions_its_labels_and_their_price(database: Database) -> None:
    decisions, labels, book = Decisions(database), Labels(database), Book(database)
    decisions.add(record(project="shop", cost_usd=0.25))
    first, second = (book.label(project="shop") for _ in range(2))
    labels.add_all([first, second, first])
    labels.add(second)
    decisions.add(record(project="desk"))
    desk, shop = Overview(database).projects(None, "", 9)
    price = record().cost_usd
    assert (shop.decisions, shop.labels, shop.cost_usd) == (3, 2, pytest.approx(0.25 + 2 * price))
    assert (desk.decisions, desk.labels, desk.cost_usd) == (1, 0, price)


def test_a_page_of_questions_ends_after_so_many_sums(database: Database) -> None:
    decisions = Decisions(database)
    for key in ("a", "b", "c"):
        for top in ("yes", "no"):
            decisions.add(record(replace(asked(key, key), top=top, confidence=0.5)))
    keys = [one.key for one in Overview(database, sums=2).questions("default", "", 9, 1_000)]
    assert keys == ["a", "b"]
    found = Overview(database).questions("default", "", 9, 1_000)
    assert [(one.key, one.decisions) for one in found] == [("a", 2), ("b", 2), ("c", 2)]
