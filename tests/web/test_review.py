"""`GET /v1/review`, and what labels of the queue say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from svc import jsontext, limits
from tests.scripted import Json
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying


class Reviewed(Labelled):
    """Reviewers take decisions and label them."""

    def review(self, reviewer: str = "ann", status: int = 200, **query: Any) -> Json:
        given = {"question": "q", "reviewer": reviewer, **query}
        text = "&".join(f"{name}={value}" for name, value in given.items())
        return self.get(f"/v1/review?{text}", status)

    def say(self, decision_id: str, label: Any, reviewer: str = "ann", **fields: Any) -> Json:
        body = {"decision_id": decision_id, "question": "q", "label": label, **fields}
        response = self.client.post("/v1/feedback", json={**body, "reviewer": reviewer})
        assert response.status_code == 200, response.text
        return dict(response.get_json())

    def skip(self, decision_id: str, reviewer: str = "ann", question: str = "q") -> Any:
        body = {"decision_id": decision_id, "question": question, "reviewer": reviewer}
        return self.client.post("/v1/review/skip", json=body)


@pytest.fixture
def reviewed(start: Start) -> Reviewed:
    return Reviewed(start(obeying).test_client())


def test_a_reviewer_gets_decisions_with_the_question_and_without_answers(
    reviewed: Reviewed,
) -> None:
    made = reviewed.decide("cat=0.8", ref="ticket 7", tags={"shop": "de"})
    page = reviewed.review()
    assert (page["project"], page["question"], page["reviewer"]) == ("default", "q", "ann")
    assert page["definition"]["type"] == "choice"
    assert set(page["definition"]["options"]) == {"cat", "dog"}
    (item,) = page["items"]
    assert (item["id"], item["question"], item["ref"]) == (made["id"], "q", "ticket 7")
    assert item["tags"] == {"shop": "de"}
    assert item["leased_until"] > item["created_at"]
    entry = reviewed.get("/v1/audit")["entries"][0]
    assert item["state_hash"] == entry["state_hash"]
    assert "answer" not in item


def test_answers_are_shown_to_who_asks_for_them(reviewed: Reviewed) -> None:
    made = reviewed.decide("cat=0.8")
    (item,) = reviewed.review(answers="shown")["items"]
    assert item["answer"] == made["answers"]["q"]


def test_nobody_gets_what_another_reviewer_has(reviewed: Reviewed) -> None:
    for number in range(6):
        reviewed.decide(f"cat=0.8; {number}", debias=False)
    pages = [reviewed.review(name, limit=4)["items"] for name in ("ann", "bob", "eve")]
    assert [len(page) for page in pages] == [4, 2, 0]
    assert len({item["id"] for page in pages for item in page}) == 6


def test_new_decisions_are_found_as_soon_as_none_is_left(reviewed: Reviewed) -> None:
    for number in range(3):
        made = reviewed.decide(f"cat=0.8; {number}")
        assert [item["id"] for item in reviewed.review()["items"]] == [made["id"]]
        reviewed.say(made["id"], "cat")
    assert reviewed.review()["items"] == []


def test_progress_counts_and_tells_how_many_labels_to_go(reviewed: Reviewed) -> None:
    for number in range(8):
        reviewed.decide(f"cat=0.9{number}; {number}", debias=False)
    items = reviewed.review(limit=4)["items"]
    for item in items[:3]:
        reviewed.say(item["id"], "cat")
    assert reviewed.skip(items[3]["id"]).status_code == 200
    progress = reviewed.review(limit=1)["progress"]
    counts = {name: progress[name] for name in ("labels", "decisions", "reviewed", "skipped")}
    assert counts == {"labels": 3, "decisions": 8, "reviewed": 3, "skipped": 1}
    assert (progress["leased"], progress["waiting"]) == (1, 4)
    assert progress["accuracy"]["estimate"] == 1
    assert progress["accuracy"]["low"] < 0.7
    target = progress["thresholds"][0]
    assert (target["target"], target["min_confidence"]) == (0.9, None)
    assert target["labels_needed"] > 20


def test_a_caller_cannot_choose_the_chance_of_what_was_handed_out(reviewed: Reviewed) -> None:
    for number in range(4):
        reviewed.decide(f"cat=0.8; {number}", debias=False)
    (item,) = reviewed.review(limit=1)["items"]
    reviewed.say(item["id"], "cat", sampled="other", chance=0.001)
    sampling = reviewed.get("/v1/calibration?question=q")["sampling"]
    assert sampling["labels"] == {"random": 0, "queue": 1, "other": 0, "unknown": 0}
    (label,) = reviewed.get(f"/v1/decisions/{item['id']}")["labels"]
    assert label["sampled"] == "queue"
    assert 0 < label["chance"] <= 1 and label["chance"] != 0.001


def test_a_label_without_a_reviewer_is_not_one_of_the_queue(reviewed: Reviewed) -> None:
    """A customer may complain of a decision that lies in a reviewer's hands."""
    made = reviewed.decide("cat=0.8")["id"]
    assert reviewed.review(limit=1)["items"]
    reviewed.feedback(made, "dog")
    sampling = reviewed.get("/v1/calibration?question=q")["sampling"]
    assert sampling["labels"] == {"random": 0, "queue": 0, "other": 0, "unknown": 1}
    assert reviewed.review()["progress"]["accuracy"] is None


def test_what_was_given_back_is_not_given_back_again(reviewed: Reviewed) -> None:
    made = reviewed.decide("cat=0.8")["id"]
    assert reviewed.review()["items"]
    assert [reviewed.skip(made).status_code for _ in range(2)] == [200, 422]


def test_what_reviewers_said_is_kept_where_they_disagree(reviewed: Reviewed) -> None:
    made = reviewed.decide("cat=0.8")["id"]
    reviewed.say(made, "cat", "ann")
    agreed = reviewed.decide("cat=0.7")["id"]
    for name in ("ann", "bob"):
        reviewed.say(agreed, "cat", name)
    assert reviewed.get("/v1/review/disagreements?question=q")["disagreements"] == []
    reviewed.say(made, "dog", "bob")
    (one,) = reviewed.get("/v1/review/disagreements?question=q")["disagreements"]
    assert (one["id"], one["question"], one["label"]) == (made, "q", "dog")
    said = [(judgement["reviewer"], judgement["label"]) for judgement in one["judgements"]]
    assert said == [("ann", "cat"), ("bob", "dog")]
    reviewed.say(made, "dog", "ann")
    assert reviewed.get("/v1/review/disagreements?question=q")["disagreements"] == []


def test_reviewers_who_write_one_value_in_two_ways_agree(reviewed: Reviewed) -> None:
    made = reviewed.decide('value="Rome", 1', CITY)["id"]
    reviewed.say(made, "Rome", "ann")
    reviewed.say(made, " rome", "bob")
    assert reviewed.get("/v1/review/disagreements?question=q")["disagreements"] == []
    reviewed.say(made, "Oslo", "bob")
    for number in range(3):
        later = reviewed.decide(f'value="Rome", 1; {number}', CITY)["id"]
        reviewed.say(later, "Rome", "ann"), reviewed.say(later, "ROME", "bob")
    (one,) = reviewed.get("/v1/review/disagreements?question=q&limit=2")["disagreements"]
    assert one["id"] == made


def test_any_number_of_names_fills_no_more_than_the_last_reviewers_do(reviewed: Reviewed) -> None:
    made = reviewed.decide("cat=0.8")["id"]
    for number in range(limits.JUDGEMENTS_KEPT + 3):
        reviewed.say(made, "cat" if number % 2 else "dog", f"name {number}")
    (one,) = reviewed.get("/v1/review/disagreements?question=q")["disagreements"]
    names = [judgement["reviewer"] for judgement in one["judgements"]]
    assert names == [f"name {number}" for number in range(3, limits.JUDGEMENTS_KEPT + 3)]


def test_a_list_of_disagreements_has_a_bounded_size(reviewed: Reviewed) -> None:
    long = {**CITY, "max_length": 2_000}
    made = [reviewed.decide('value="Rome", 0.9', long)["id"] for _ in range(60)]
    for number in range(limits.JUDGEMENTS_KEPT):
        label = f"{number}{'x' * 1_900}"
        lines = [{"id": one, "labels": {"q": label}, "reviewer": str(number)} for one in made]
        assert (
            reviewed.client.post("/v1/feedback/bulk", json={"labels": lines}).get_json()["taken"]
            == 60
        )
    found = reviewed.get("/v1/review/disagreements?question=q")["disagreements"]
    assert [one["id"] for one in found] == made[::-1][: len(found)]
    assert 1_800_000 < len(jsontext.dumps(found)) < limits.PAGE_BYTES


def test_a_list_of_items_has_a_bounded_size_and_goes_on_with_those_that_did_not_fit(
    reviewed: Reviewed,
) -> None:
    asked = {"type": "choice", "instructions": "Which?", "options": {"x" * 90_000: "", "dog": ""}}
    made = [reviewed.decide("dog=0.9", asked)["id"] for _ in range(30)]
    found: list[str] = []
    while items := reviewed.review(answers="shown", limit=30)["items"]:
        assert len(items) < 30
        assert len(jsontext.dumps(items)) < limits.PAGE_BYTES
        for item in items:
            found.append(item["id"])
            reviewed.say(item["id"], "dog")
    assert sorted(found) == sorted(made)


def test_a_skip_needs_the_reviewer_who_has_the_decision(reviewed: Reviewed) -> None:
    made = reviewed.decide("cat=0.8")["id"]
    refused = reviewed.skip(made)
    assert refused.status_code == 422
    message = refused.get_json()["error"]["message"]
    assert message == 'question "q": the decision is not in the hands of "ann"'
    reviewed.review()
    assert reviewed.skip(made, "bob").status_code == 422
    assert reviewed.skip(made).get_json() == {
        "decision_id": made,
        "question": "q",
        "reviewer": "ann",
    }
    assert reviewed.review()["items"] == []
    assert [item["id"] for item in reviewed.review("bob")["items"]] == [made]
    for given in (("dec_nothing", "ann", "q"), (made, "ann", "x")):
        assert reviewed.skip(*given).status_code == 404


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("question=q", "reviewer: is required in the query, such as ?reviewer=..."),
        ("reviewer=ann", "question: is required in the query, such as ?question=..."),
        ("question=q&reviewer=%20", "reviewer: must not begin or end with a blank"),
        ("question=q&reviewer=" + "a" * 65, "reviewer: must have 1 to 64 characters"),
        (
            "question=q&reviewer=ann&limit=101",
            "limit: must be a whole number from 1 to 100",
        ),
        ("question=q&reviewer=ann&answers=yes", "answers: must be one of hidden, shown"),
        ("question=q&reviewer=ann&chance=1", "chance: unknown parameter"),
    ],
)
def test_a_wrong_query_is_refused_with_what_is_allowed(
    reviewed: Reviewed, query: str, message: str
) -> None:
    reviewed.decide("cat=0.8")
    assert reviewed.get(f"/v1/review?{query}", 422)["error"]["message"] == message


def test_what_was_never_asked_is_404(reviewed: Reviewed) -> None:
    assert reviewed.review(status=404)["error"]["type"] == "not_found"
    reviewed.get("/v1/review/disagreements?question=q", 404)


@pytest.mark.parametrize(("question", "state"), [(NOUL, "yes=0.9"), (CITY, 'value="Rome", 0.9')])
def test_other_types_of_questions_are_handed_out_too(
    reviewed: Reviewed, question: Json, state: str
) -> None:
    made = reviewed.decide(state, question)
    assert [item["id"] for item in reviewed.review()["items"]] == [made["id"]]


def test_values_that_were_not_kept_are_not_handed_out(reviewed: Reviewed) -> None:
    reviewed.decide('value="Rome", 0.9', CITY, privacy="strict")
    page = reviewed.review()
    assert page["items"] == []
    assert page["progress"]["decisions"] == 0


def test_labels_of_the_queue_tell_the_accuracy_where_the_least_certain_do_not(
    reviewed: Reviewed,
) -> None:
    """Answers are right as often as an overconfident model would have it for its surer half."""
    chance = random.Random(5)
    truth: dict[str, str] = {}
    sure: dict[str, float] = {}
    for number in range(150):
        p = round(chance.uniform(0.5, 0.99), 2)
        made = reviewed.decide(f"cat={p}; {number}", debias=False)["id"]
        sure[made] = p
        truth[made] = "cat" if chance.random() < (0.95 if p > 0.75 else 0.35) else "dog"
    right = [truth[made] == "cat" for made in truth]
    accuracy = sum(right) / len(right)
    for _ in range(6):
        for item in reviewed.review(limit=10)["items"]:
            reviewed.say(item["id"], truth[item["id"]])
    found = reviewed.review(limit=1)["progress"]["accuracy"]
    report = reviewed.get("/v1/calibration?question=q")
    least = sorted(sure, key=sure.__getitem__)[:60]
    picked = sum(truth[made] == "cat" for made in least) / 60
    assert abs(picked - accuracy) > 0.2
    assert report["labels"] == 60
    # Which are drawn is another chance each time: four standard errors of 60 labels.
    assert report["before"]["accuracy"] == pytest.approx(accuracy, abs=0.18)
    assert report["uncertainty"]["before"]["accuracy"]["estimate"] == pytest.approx(
        report["before"]["accuracy"], abs=1e-5
    )
    assert found["low"] < found["estimate"] < found["high"]
    assert found["estimate"] == pytest.approx(accuracy, abs=0.18)
