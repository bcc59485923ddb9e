"""`GET /v1/export`."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from svc import limits
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying
from tests.web.models import ANIMAL

HEAD = (
    "id,ref,project,created_at,model,tags,"
    "question,answer,confidence,label,labelled_at,sampled,chance"
)


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def exported(labelled: Labelled, query: str = "") -> Any:
    response = labelled.client.get(f"/v1/export?{query}")
    assert response.status_code == 200, response.text
    return response


def table(labelled: Labelled, query: str = "") -> list[dict[str, str]]:
    text = exported(labelled, query).data.decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_row_has_the_answer_and_its_label(labelled: Labelled) -> None:
    decided = labelled.decide("cat=0.8", ref="ticket 1", tags={"channel": "mail"})
    labelled.feedback(decided["id"], "dog")
    text = exported(labelled).data.decode()
    assert text.startswith(HEAD + "\r\n") and text.endswith("\r\n")
    (row,) = table(labelled)
    assert row.pop("created_at") <= row.pop("labelled_at")
    assert row == {
        "id": decided["id"],
        "ref": "ticket 1",
        "project": "default",
        "model": "'@scripted/m",
        "tags": '{"channel":"mail"}',
        "question": "q",
        "answer": "cat",
        "confidence": str(decided["answers"]["q"]["confidence"]),
        "label": "dog",
        "sampled": "",
        "chance": "",
    }


def test_there_is_a_row_for_each_answer_but_none_for_what_was_skipped(labelled: Labelled) -> None:
    skipped = {**NOUL, "when": {"a": 2}}
    multi = {"type": "multi", "instructions": "Which?", "options": {"dog": "", "cat": ""}}
    questions = {"animal": ANIMAL, "spam": NOUL, "none": skipped, "all": multi}
    body = {"state": {"a": 1}, "questions": questions}
    assert labelled.client.post("/v1/decide", json=body).status_code == 200
    assert {row["question"] for row in table(labelled)} == {"animal", "spam", "all"}
    assert [row["answer"] for row in table(labelled, "question=spam")] == ["true"]


@pytest.mark.parametrize("start_of_cell", ["=", "+", "-", "@"])
def test_no_cell_is_one_that_a_spreadsheet_runs(labelled: Labelled, start_of_cell: str) -> None:
    text = f'{start_of_cell}cmd|"/C calc"!A0'
    labelled.decide(f"value={json.dumps(text)}, 0.9", CITY, ref=text)
    (row,) = table(labelled)
    assert row["ref"] == f"'{text}"
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())


@pytest.mark.parametrize("text", ["r;=2+2", "r; @x", "\uff1d1+3", "a;-1"])
def test_nor_is_a_part_that_some_spreadsheets_take_for_a_cell(
    labelled: Labelled, text: str
) -> None:
    labelled.decide("cat=0.8", ref=text)
    (row,) = table(labelled)
    assert row["ref"].replace("'", "") == text
    assert not re.search(r"(^|;)\s*[=@\uff1d-]", row["ref"])


def test_a_number_stays_a_number(labelled: Labelled) -> None:
    labelled.decide("value=-12.5, 0.9", {"type": "number", "instructions": "How much?"})
    assert [row["answer"] for row in table(labelled)] == ["-12.5"]


def test_json_lines_are_decisions_as_they_are_shown_alone(labelled: Labelled) -> None:
    first, second = labelled.decide("cat=0.8"), labelled.decide("cat=0.7")
    labelled.feedback(first["id"], "dog")
    response = exported(labelled, "format=jsonl")
    assert response.mimetype == "application/x-ndjson"
    lines = [json.loads(line) for line in response.data.splitlines()]
    alone = [labelled.get(f"/v1/decisions/{one['id']}") for one in (second, first)]
    assert [one.pop("questions").keys() for one in alone] == [{"q"}, {"q"}]
    assert lines == alone


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_pages_put_together_are_the_whole(labelled: Labelled, kind: str) -> None:
    for number in range(5):
        labelled.decide(f"cat=0.8; {number}", ref=f"r{number}")
    whole = exported(labelled, f"format={kind}")
    assert "x-next-before" not in whole.headers
    parts, before = b"", ""
    while before is not None:
        page = exported(labelled, f"format={kind}&limit=2&before={before}")
        parts += page.data
        before = page.headers.get("x-next-before")
    assert parts == whole.data


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_page_is_bounded_whatever_labels_and_repeated_tags_add(start: Start, kind: str) -> None:
    labelled = Labelled(start(obeying).test_client())
    tags = {f"tag {number}": "\U0001f600" * 128 for number in range(16)}
    long = {**CITY, "max_length": 2_000}
    questions = {f"q{number}": long for number in range(24)}
    for number in range(12):
        body = {"state": f'value="x", 0.9; {number}', "questions": questions, "tags": tags}
        decided = labelled.client.post("/v1/decide", json=body).get_json()
        labels = {f"q{at}": "\U0001f600" * 2_000 for at in range(24)}
        lines = {"labels": [{"id": decided["id"], "labels": labels}]}
        taken = labelled.client.post("/v1/feedback/bulk", json=lines).get_json()
        assert taken["taken"] == 24, taken
    sizes, before = [], ""
    while before is not None:
        page = exported(labelled, f"format={kind}&before={before}")
        sizes.append(len(page.data))
        before = page.headers.get("x-next-before")
    assert sum(sizes) > limits.PAGE_BYTES and max(sizes) <= limits.PAGE_BYTES


def test_it_is_filtered_like_the_audit_log(labelled: Labelled) -> None:
    labelled.decide("cat=0.8", ref="a")
    labelled.decide("cat=0.2", ref="b")
    assert [row["ref"] for row in table(labelled, "question=q&answer=dog")] == ["b"]
    for query in ("formt=csv", "format=xml", "limit=1001"):
        assert labelled.client.get(f"/v1/export?{query}").status_code == 422


def test_a_strict_value_is_not_exported(labelled: Labelled) -> None:
    labelled.decide('value="Rome", 0.9', CITY, privacy="strict")
    assert [row["answer"] for row in table(labelled)] == ["[redacted]"]


def test_no_state_is_exported(labelled: Labelled) -> None:
    labelled.decide("xyzzy cat=0.8")
    assert len(table(labelled)) == 1
    for kind in ("csv", "jsonl"):
        assert b"xyzzy" not in exported(labelled, f"format={kind}").data
