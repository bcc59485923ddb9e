"""Which decisions are wanted."""

from __future__ import annotations

import pytest

from svc.store import Database, Wanted
from svc.store.decisions import Decisions
from tests.store.records import record

TAGS = {"a": "1", "b": "2", "c": '"2"'}


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ((("a", "1"),), True),
        ((("a", "1"), ("c", '"2"'), ("b", "2")), True),
        ((("a", "1"), ("b", "1")), False),
        ((("a", "1"), ("a", "2")), False),
        ((("d", "1"),), False),
    ],
)
def test_a_decision_is_wanted_where_it_has_every_tag(
    database: Database, tags: tuple[tuple[str, str], ...], found: bool
) -> None:
    decisions = Decisions(database)
    decisions.add(record())
    decision_id = decisions.add(record(tags=TAGS))
    page = decisions.page("default", 10, wanted=Wanted(tags=tags))
    assert [entry.id for entry in page.entries] == [decision_id] * found


def test_all_tags_are_looked_for_in_one_pass_over_those_of_a_decision() -> None:
    ((condition, values),) = Wanted(tags=tuple(TAGS.items())).conditions()
    assert condition.count("json_each") == 1
    assert len(values) == 2 * len(TAGS)
