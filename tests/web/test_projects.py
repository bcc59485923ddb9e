"""`GET /v1/projects` and `GET /v1/questions`."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import quote

import pytest

from tests.scripted import Json
from tests.web.conftest import Start
from tests.web.labelled import NOUL, Labelled, obeying
from tests.web.models import ANIMAL

SCORE = {"type": "score", "instructions": "How bad?", "levels": ["calm", "furious"]}


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def named(entries: list[Json], name: str) -> list[Any]:
    return [entry[name] for entry in entries]


def test_projects_have_their_sums(labelled: Labelled) -> None:
    for number in range(3):
        decided = labelled.decide(f"cat=0.8; {number}", project="zoo")
    labelled.feedback(decided["id"], "cat")
    labelled.decide("cat=0.8", project="farm")
    page = labelled.get("/v1/projects")
    assert (named(page["projects"], "project"), page["next_after"]) == (["farm", "zoo"], None)
    newest = labelled.get("/v1/audit?project=zoo&limit=1")["entries"][0]["created_at"]
    assert page["projects"][1] == {
        "project": "zoo",
        "decisions": 3,
        "labels": 1,
        "last_seen": newest,
        "cost_usd": 0,
    }


def test_a_server_without_decisions_has_no_projects(labelled: Labelled) -> None:
    assert labelled.get("/v1/projects") == {"projects": [], "next_after": None}
    nothing = {"project": "zoo", "questions": [], "next_after": None}
    assert labelled.get("/v1/questions?project=zoo") == nothing


def test_questions_are_told_in_their_newest_wording(labelled: Labelled) -> None:
    for words in ("Which is it?", "Which animal?"):
        question = {**ANIMAL, "instructions": words, "options": {"cat": "Meows", "dog": "Barks"}}
        decided = labelled.decide("cat=0.8", question)
    labelled.feedback(decided["id"], "cat")
    (entry,) = labelled.get("/v1/questions")["questions"]
    last_seen = entry.pop("last_seen")
    newest, *_ = labelled.get("/v1/audit")["entries"]
    assert [entry.pop("wording_id")] == newest["wording_ids"]
    assert entry == {
        "question": "q",
        "type": "choice",
        "wording": {
            "type": "choice",
            "instructions": "Which animal?",
            "options": {"cat": "Meows", "dog": "Barks"},
            "escape": False,
        },
        "decisions": 1,
        "labels": 1,
        "calibrator": None,
    }
    assert last_seen == newest["created_at"]


def test_levels_have_their_words(labelled: Labelled) -> None:
    labelled.decide("s", SCORE)
    (entry,) = labelled.get("/v1/questions")["questions"]
    assert entry["wording"]["levels"] == ["calm", "furious"]


def test_a_calibrator_is_told_by_its_kind(labelled: Labelled) -> None:
    labelled.teach(30)
    assert named(labelled.get("/v1/questions")["questions"], "calibrator") == ["temperature"]


def test_pages_lead_on_by_name(labelled: Labelled) -> None:
    keys = ("a", "b", "c")
    for name in keys:
        questions = dict.fromkeys(keys, NOUL)
        body = {"state": "yes=0.9", "questions": questions, "project": name}
        assert labelled.client.post("/v1/decide", json=body).status_code == 200
    first = labelled.get("/v1/projects?limit=2")
    assert (named(first["projects"], "project"), first["next_after"]) == (["a", "b"], "b")
    last = labelled.get("/v1/projects?limit=2&after=b")
    assert (named(last["projects"], "project"), last["next_after"]) == (["c"], None)
    first = labelled.get("/v1/questions?project=a&limit=2")
    assert (named(first["questions"], "question"), first["next_after"]) == (["a", "b"], "b")
    last = labelled.get("/v1/questions?project=a&limit=2&after=b")
    assert (named(last["questions"], "question"), last["next_after"]) == (["c"], None)


def test_long_keys_end_a_page_before_its_limit_and_lead_on(labelled: Labelled) -> None:
    keys = [chr(ord("a") + number) + "😀" * 90_000 for number in range(12)]
    for key in keys:
        labelled.client.post("/v1/decide", json={"state": "s", "questions": {key: NOUL}})
    seen, after = [], ""
    while after is not None:
        assert len(quote(after)) < 2_000
        response = labelled.client.get("/v1/questions", query_string={"after": after})
        assert len(response.data) < 2_100_000
        seen += named(response.get_json()["questions"], "question")
        after = response.get_json()["next_after"]
    assert seen == keys


CUT, LAST = "a" * 400, chr(sys.maxunicode)


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        (["a", CUT + "x", "b"], [CUT + LAST + "1", CUT + LAST * 2]),
        ([CUT[:396] + LAST, CUT[:396] + LAST + "1", "b"], [CUT[:396] + LAST * 2]),
        (["a" + LAST * 100, LAST * 100, LAST * 101], [LAST * 102]),
        (["\ud7ff" * 134, "\ue000"], ["\ud7ff" * 135]),
    ],
    ids=["cut", "as long as a place", "nothing behind", "before the halves of pairs"],
)
def test_no_page_leads_on_to_itself(
    labelled: Labelled, shown: list[str], hidden: list[str]
) -> None:
    """Whatever follows where keys that begin alike are cut, even the last character there is."""
    for key in shown + hidden:
        labelled.client.post("/v1/decide", json={"state": "s", "questions": {key: NOUL}})
    seen, after = [], ""
    while after is not None:
        response = labelled.client.get("/v1/questions", query_string={"after": after, "limit": 1})
        seen += named(response.get_json()["questions"], "question")
        after = response.get_json()["next_after"]
        assert len(seen) <= len(shown)
    assert seen == shown


def test_long_questions_end_a_page_before_its_limit(labelled: Labelled) -> None:
    for number in range(24):
        question = {**NOUL, "instructions": f"{number}" + "x" * 90_000}
        labelled.client.post(
            "/v1/decide", json={"state": "s", "questions": {f"q{number:02}": question}}
        )
    seen, after = [], ""
    while after is not None:
        response = labelled.client.get(f"/v1/questions?after={after}")
        assert len(response.data) < 2_100_000
        seen += named(response.get_json()["questions"], "question")
        after = response.get_json()["next_after"]
    assert seen == [f"q{number:02}" for number in range(24)]


@pytest.mark.parametrize("path", ["/v1/projects?project=x", "/v1/questions?projct=x"])
def test_a_parameter_that_is_not_known_is_refused(labelled: Labelled, path: str) -> None:
    assert "unknown parameter; allowed: " in labelled.get(path, 422)["error"]["message"]


def test_a_key_of_one_project_sees_that_project_alone(start: Start) -> None:
    app = start(obeying)
    keys = app.extensions["svc"].keys
    texts = {only: keys.create(str(only), 600, only).text for only in (None, "mine", "new")}

    def ask(only: str | None, path: str, body: Json | None = None) -> Any:
        headers = {"Authorization": f"Bearer {texts[only]}"}
        method = "GET" if body is None else "POST"
        return app.test_client().open(path, method=method, json=body, headers=headers)

    for project in ("mine", "theirs"):
        body = {"state": "x", "questions": {"q": NOUL}, "project": project}
        assert ask(None, "/v1/decide", body).status_code == 200
    found = {only: ask(only, "/v1/projects").get_json()["projects"] for only in texts}
    assert named(found[None], "project") == ["mine", "theirs"]
    assert named(found["mine"], "project") == ["mine"]
    assert found["new"] == []
    assert ask("mine", "/v1/questions?project=theirs").status_code == 403
