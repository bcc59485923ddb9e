"""Whom a label is about where the decision is from before readings said so."""

from __future__ import annotations

from typing import Any

import pytest

from svc.learning.checking import Checks
from svc.records import Answer, AskedQuestion, Source
from svc.schemas import Feedback
from svc.store import QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.learning.test_challenged import ANIMAL
from tests.store.records import record

MEMBERS = {"members": {"@p/w": [0.7, 0.3], "@p/m": None}}


@pytest.mark.parametrize(
    ("kept", "fields", "by"),
    [
        ({}, {}, "@p/m,@p/w logprobs"),
        (MEMBERS, {"agreement": 1.0}, "@p/m+@p/w logprobs"),
        ({}, {"answered_by": "@p/w"}, "@p/w logprobs"),
        ({"by": "@p/w verbal"}, {"answered_by": "@p/w"}, "@p/w verbal"),
    ],
)
def test_labels_of_older_decisions_are_grouped_as_later_ones(
    database: Database, kept: dict[str, Any], fields: dict[str, Any], by: str
) -> None:
    asked = AskedQuestion("q", ANIMAL.digest, ANIMAL.definition_json, {"p": [0.7, 0.3], **kept})
    answer = Answer(Source.MODELS, {"choice": "a", **fields}, top="a", confidence=0.7)
    decisions = Decisions(database)
    made = decisions.add(record(asked, model="@p/m,@p/w", answers={"q": answer}))
    found, _ = decisions.several([made])
    checks = Checks(QuestionVersions(database), 0)
    one = checks.check(found[made], Feedback(decision_id=made, question="q", label="a"))
    (label,) = checks.labels([one])
    assert label.answered_by == by
