"""The filters of `GET /v1/audit`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from svc.store.audit_pages import Bounds
from svc.store.database import Database
from svc.store.decisions import Decisions, Match
from svc.store.wanted import Wanted
from tests.scripted import Json
from tests.store.conftest import database, path
from tests.store.records import record
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying

__all__ = ["database", "path"]  # the fixtures

SCORE = {"type": "score", "instructions": "How bad?", "levels": ["low", "high"]}
MULTI = {"type": "multi", "instructions": "Which?", "options": {"cat": "", "dog": ""}}


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def refs(client: Labelled, /, **query: Any) -> list[str]:
    """The refs of the decisions on the page, oldest first."""
    page = client.get(f"/v1/audit?{urlencode(query, doseq=True)}")
    assert page["next_before"] is None
    return [entry["ref"] for entry in page["entries"][::-1]]


def refused(labelled: Labelled, query: str) -> str:
    message: str = labelled.get(f"/v1/audit?{query}", 422)["error"]["message"]
    return message


@pytest.fixture
def some(labelled: Labelled) -> Labelled:
    labelled.decide("cat=0.9", ref="sure", tags={"channel": "mail", "lang": "de"})
    labelled.decide("cat=0.6", ref="unsure", tags={"channel": "mail"})
    labelled.decide("cat=0.2", ref="dog_1", tags={"channel": "50%"}, model="@scripted/other")
    labelled.decide("yes=0.1", NOUL, ref="noul")
    return labelled


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"ref": "sure"}, ["sure"]),
        ({"ref": "%"}, []),
        ({"ref": "dog%1"}, []),
        ({"ref": "SURE"}, []),
        ({"tag": "channel:mail"}, ["sure", "unsure"]),
        ({"tag": ["channel:mail", "lang:de"]}, ["sure"]),
        ({"tag": "channel:50%"}, ["dog_1"]),
        ({"tag": "channel:m%"}, []),
        ({"tag": "channel:"}, []),
        ({"model": "@scripted/other"}, ["dog_1"]),
        ({"model": "@scripted"}, []),
        ({"question": "q"}, ["sure", "unsure", "dog_1", "noul"]),
        ({"question": "other"}, []),
        ({"question": "q", "answer": "cat"}, ["sure", "unsure"]),
        ({"question": "q", "answer": "dog"}, ["dog_1"]),
        ({"question": "q", "answer": "false"}, ["noul"]),
        ({"question": "q", "min_confidence": 0.75}, ["sure", "dog_1", "noul"]),
        ({"question": "q", "max_confidence": 0.75}, ["unsure"]),
        ({"question": "q", "answer": "cat", "min_confidence": 0.75, "ref": "sure"}, ["sure"]),
        ({"from": 0, "to": "2100-01-01"}, ["sure", "unsure", "dog_1", "noul"]),
        ({"to": 1}, []),
        ({"from": "2100-01-01T00:00:00+01:00"}, []),
        ({"from": 999_999_999_999_999}, []),
        ({"to": 999_999_999_999_999}, ["sure", "unsure", "dog_1", "noul"]),
        ({"tag": ["channel:mail"] * 2_000}, ["sure", "unsure"]),
    ],
)
def test_each_filter_finds_its_decisions(
    some: Labelled, query: dict[str, Any], found: list[str]
) -> None:
    assert refs(some, **query) == found


def test_time_divides_decisions_at_the_moment(labelled: Labelled) -> None:
    labelled.decide("cat=0.9", ref="r")
    (entry,) = labelled.get("/v1/audit")["entries"]
    at = entry["created_at"]
    assert refs(labelled, **{"from": at}) == ["r"]
    assert refs(labelled, **{"from": at + 1}) == []
    assert refs(labelled, to=at) == []
    assert refs(labelled, to=at + 1) == ["r"]


@pytest.mark.parametrize(
    ("question", "state", "answers"),
    [
        (SCORE, "s", ["0", "1"]),
        (MULTI, "s", ['["cat","dog"]', '["dog", "cat"]', '["cat"]', '["dog"]', "[]"]),
        (CITY, 'value="Rome", 0.9', ["Rome"]),
        (CITY, "value=null, 0.9", ["null"]),
        ({"type": "number", "instructions": "?"}, "value=12.5, 0.9", ["12.5"]),
    ],
)
def test_answers_of_every_type_are_found(
    labelled: Labelled, question: Json, state: str, answers: list[str]
) -> None:
    labelled.decide(state, question, ref="r")
    found = [answer for answer in answers if refs(labelled, question="q", answer=answer)]
    assert found
    assert refs(labelled, question="q", answer="else") == []


def test_answers_of_the_criteria_route_are_found(labelled: Labelled) -> None:
    question = {"type": "score", "criteria": ["low", "high"]}
    body = {"state": "s", "questions": {"q": question}, "ref": "r"}
    assert labelled.client.post("/v1/systemone", json=body).status_code == 200
    found = [refs(labelled, question="q", answer=level) for level in "01"]
    assert sorted(found) == [[], ["r"]]


def test_labelled_or_not_can_be_asked_of_a_question(some: Labelled) -> None:
    entries = some.get("/v1/audit")["entries"]
    some.feedback(entries[-1]["id"], "cat")
    assert refs(some, labelled="true") == ["sure"]
    assert refs(some, labelled="false") == ["unsure", "dog_1", "noul"]
    assert refs(some, labelled="true", question="q") == ["sure"]
    assert refs(some, labelled="true", question="other") == []


def test_pages_of_filtered_decisions_go_on_where_they_ended(some: Labelled) -> None:
    seen, query = [], "question=q&answer=cat&limit=1"
    page = some.get(f"/v1/audit?{query}")
    while True:
        seen += [entry["ref"] for entry in page["entries"]]
        if page["next_before"] is None:
            break
        page = some.get(f"/v1/audit?{query}&before={page['next_before']}")
    assert seen == ["unsure", "sure"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("labeled=true", "labeled: unknown parameter; allowed: project, question, answer"),
        ("answer=cat", "answer: needs a question"),
        ("min_confidence=0.5", "min_confidence: needs a question"),
        ("question=q&min_confidence=2", "min_confidence: must be a number from 0 to 1"),
        ("question=q&max_confidence=nan", "max_confidence: must be a number from 0 to 1"),
        ("question=q&max_confidence=1e400", "max_confidence: must be a number from 0 to 1"),
        ("tag=mail", "tag: must be name:value"),
        ("from=yesterday", "from: must be milliseconds since the epoch"),
        ("to=9999999999999999", "to: must be milliseconds"),
        ("labelled=yes", "labelled: must be true or false"),
    ],
)
def test_a_filter_of_another_form_is_refused(labelled: Labelled, query: str, words: str) -> None:
    assert words in refused(labelled, query)


def test_many_unknown_parameters_are_refused_together(labelled: Labelled) -> None:
    query = "&".join(f"u{number}=1" for number in range(30))
    assert refused(labelled, query).startswith("30 unknown fields; allowed: ")


def pages(decisions: Decisions, wanted: Wanted, limit: int = 10) -> Iterator[int]:
    """How many decisions each page has, up to the last."""
    before = None
    while True:
        page = decisions.page("default", limit, before, wanted=wanted)
        yield len(page.entries)
        before = page.next_before
        if before is None:
            return


def test_a_rare_match_is_looked_for_in_bounded_steps(database: Database) -> None:
    decisions = Decisions(database, bounds=Bounds(decisions=4))
    for number in range(11):
        decisions.add(record(ref="r", model="rare" if number == 1 else "usual"))
    assert list(pages(decisions, Wanted(model="rare"))) == [0, 0, 1]
    assert list(pages(decisions, Wanted(model="rare", ref="r"))) == [0, 0, 1]
    assert list(pages(decisions, Wanted(model="usual"), limit=3)) == [3, 3, 3, 1]


def test_long_decisions_that_do_not_match_end_a_page_too(database: Database) -> None:
    decisions = Decisions(database, bounds=Bounds(bytes=3_000))
    ids = [decisions.add(record()) for _ in range(9)]
    page = decisions.page("default", 5, matches=lambda entry: Match(entry.id == ids[0]))
    assert page.entries == [] and page.next_before in ids
    seen = []
    while page.next_before is not None:
        page = decisions.page(
            "default", 5, page.next_before, matches=lambda entry: Match(entry.id == ids[0])
        )
        seen += [entry.id for entry in page.entries]
    assert seen == [ids[0]]


def test_a_ref_is_found_by_its_index(database: Database) -> None:
    with database.read() as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT seq FROM decisions "
            "WHERE project = ? AND ref = ? AND seq < ? AND seq >= ? ORDER BY seq DESC",
            ("p", "r", 9, 0),
        ).fetchall()
    assert "decisions_by_ref" in json.dumps([tuple(row) for row in plan])
    assert "TEMP B-TREE" not in json.dumps([tuple(row) for row in plan])


def test_more_tags_than_a_decision_may_have_are_refused(labelled: Labelled) -> None:
    query = urlencode({"tag": [f"a:{number}" for number in range(17)]}, doseq=True)
    assert refused(labelled, query) == "tag: at most 16 are allowed, as many as a decision may have"


def test_a_page_ends_where_too_much_was_read_besides_its_decisions(database: Database) -> None:
    decisions = Decisions(database, bounds=Bounds(bytes=3_000))
    ids = [decisions.add(record()) for _ in range(5)][::-1]
    page = decisions.page("default", 5, matches=lambda _: Match(True, 1_200))
    assert [entry.id for entry in page.entries] == ids[:3]
    assert page.next_before == ids[2]


def test_a_page_ends_after_a_few_very_long_questions(labelled: Labelled) -> None:
    """Each of them is read to tell what was answered."""
    for number in range(50):
        long = {"type": "noul", "instructions": f"Is it? {number} {'x' * 90_000}"}
        labelled.decide("yes=0.9", long, ref=str(number))
    page = labelled.get("/v1/audit?question=q&answer=else")
    assert page["entries"] == []
    assert page["next_before"] is not None
