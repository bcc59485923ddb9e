"""What is known of the parts of a table, and what a service says about all of them."""

from __future__ import annotations

import json

import pytest

from svc.bulk.rows import asking
from svc.bulk.survey import forecast_of, surveyed
from svc.client import ServiceError, YesNo
from tests.scripted import Reply, ScriptedProvider, always

LATE = {"late": YesNo("Is it late?")}
SAID = {"asked": 3, "calls": 6, "minutes": None, "cost_usd": 0.5}


def test_a_part_tells_the_rows_that_can_be_sent() -> None:
    asked = asking(LATE, state="text", row_id="id")
    found = surveyed(asked, {"id": [1, 2, None, 4], "text": ["a", None, "c", "d"]})
    assert json.loads(found) == [2, [["1", "a"], ["4", "d"]]] or json.loads(found) == [
        2,
        [["4", "d"], ["1", "a"]],
    ]


def test_a_service_is_shown_the_sample_and_the_number_of_all() -> None:
    with ScriptedProvider(always(Reply(SAID))) as service:
        asked = asking(
            LATE, state=["text"], row_id="id", url=service.url, model="m", more={"mode": "verbal"}
        )
        parts = [
            surveyed(asked, {"id": ["a", "b"], "text": ["1", "2"]}),
            surveyed(asked, {"id": ["c"], "text": [None]}),
        ]
        said = forecast_of(asked, parts)
    (body,) = service.bodies
    assert {name: body[name] for name in ("rows", "model", "mode")} == {
        "rows": 3,
        "model": "m",
        "mode": "verbal",
    }
    assert sorted(map(str, body["sample"])) == ["{'text': '1'}", "{'text': '2'}", "{'text': None}"]
    assert (said.rows, said.calls, said.minutes, said.cost_usd) == (3, 6, None, 0.5)
    assert repr(said) == "Forecast(3 rows, 6 calls, no rate, $0.50)"


def test_a_service_that_is_not_there_is_an_error() -> None:
    asked = asking(LATE, state="text", row_id="id", url="http://127.0.0.1:9")
    with pytest.raises(ServiceError):
        forecast_of(asked, [])
