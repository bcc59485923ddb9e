"""What callers have stored, in a table of decisions."""

from __future__ import annotations

import time

import pytest

from svc import limits
from svc.web.spreadsheets import cells, text_of
from tests.web.conftest import Start, start
from tests.web.labelled import NOUL, obeying

__all__ = ["start"]  # the fixture

PROCESSOR_S = 1.0


@pytest.mark.parametrize("blank", ["\n", "\r", "\t", " ", ";", "\n ", "\u00a0"])
def test_white_space_in_a_cell_costs_no_more_than_its_length(blank: str) -> None:
    run = blank * 100_000
    before = time.thread_time()
    text = text_of([cells(f"a{run}b", f"a;{run}=1")])
    assert time.thread_time() - before < PROCESSOR_S
    # The part that a spreadsheet would run is still made safe.
    assert text.count("'") == 1


def test_a_page_of_rows_with_a_wording_each_costs_little(start: Start) -> None:
    client = start(obeying).test_client()
    for number in range(12):
        asked = {
            f"q{key}": {**NOUL, "instructions": f"Is it {number}, {key}?"}
            for key in range(limits.MAPPED_QUESTIONS)
        }
        body = {"model": "@scripted/m", "input": "yes=0.9", "questions": asked}
        assert client.post("/v1/decisions", json=body).status_code == 200
    rows = 0
    before: str | None = ""
    while before is not None:
        begun = time.thread_time()
        page = client.get(f"/v1/export?limit=1000&before={before}")
        assert page.status_code == 200
        assert time.thread_time() - begun < PROCESSOR_S
        rows += page.text.count("\r\n")
        before = page.headers.get("x-next-before")
    assert rows == 1 + 12 * limits.MAPPED_QUESTIONS
