"""Names of projects at every door: one form is stored, and what was stored before is readable."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.web.conftest import Start
from tests.web.models import decision

NFC, NFD = "Caf\u00e9", "Cafe\u0301"


def test_a_decision_is_found_under_both_ways_to_write_its_project(start: Start) -> None:
    client = start().test_client()
    made = client.post("/v1/decide", json=decision(project=NFD)).get_json()
    assert made["project"] == NFC
    for name in (NFC, NFD):
        page = client.get("/v1/audit", query_string={"project": name}).get_json()
        assert [page["project"], *(entry["id"] for entry in page["entries"])] == [NFC, made["id"]]


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/systemone"])
def test_a_name_with_something_invisible_is_refused(start: Start, path: str) -> None:
    refused = start().test_client().post(path, json=decision(project="sh\u200bop"))
    assert refused.status_code == 422
    assert "invisible" in refused.get_json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/audit", "/v1/calibration", "/v1/drift"])
def test_no_report_has_such_a_name_either(start: Start, path: str) -> None:
    query = {"project": "sh\u043ep", "question": "animal"}
    refused = start().test_client().get(path, query_string=query)
    assert refused.status_code == 422
    assert "look alike" in refused.get_json()["error"]["message"]


@pytest.mark.parametrize("old", [NFD, "sh\u200bop", "sh\u043ep"])
def test_a_name_that_was_stored_before_stays_readable(
    start: Start, tmp_path: Path, old: str
) -> None:
    client = start().test_client()
    made = client.post("/v1/decide", json=decision()).get_json()
    with sqlite3.connect(tmp_path / "svc.db") as connection:
        connection.execute("UPDATE decisions SET project = ?", (old,))
    connection.close()
    page = client.get("/v1/audit", query_string={"project": old}).get_json()
    assert [page["project"], *(entry["id"] for entry in page["entries"])] == [old, made["id"]]


def test_a_key_of_an_older_name_still_reaches_its_project(start: Start) -> None:
    app = start()
    made = app.extensions["svc"].keys.create("ada", 600, NFD)
    client, headers = app.test_client(), {"Authorization": f"Bearer {made.text}"}
    asked = client.post("/v1/decide", json=decision(project=NFC), headers=headers)
    assert asked.get_json()["project"] == NFD
    page = client.get("/v1/audit", query_string={"project": NFD}, headers=headers)
    assert len(page.get_json()["entries"]) == 1
