"""`svc.bulk.spark` on Spark in local mode, over services that are really started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc import limits
from tests.e2e.serving import Server, stored
from tests.e2e.test_access import make_key
from tests.engines.playing import Found
from tests.engines.programs import Program, example, forecast_of_map, refusals
from tests.scripted import Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, reply_to

pytestmark = pytest.mark.engines("pyspark")


@pytest.fixture
def demo(folder: Path) -> Iterator[Server]:
    with Server(folder / "demo.db", "--demo") as server:
        yield server


def started(scenario: str, folder: Path, **given: Any) -> Program:
    (folder / "spark").mkdir()
    return Program("spark", scenario, folder, files=str(folder / "spark"), **given)


def on_spark(scenario: str, folder: Path, **given: Any) -> Found:
    return started(scenario, folder, **given).found()


def test_one_poisoned_row_in_ten_thousand_is_one_error_value(folder: Path, demo: Server) -> None:
    found = on_spark(
        "poisoned", folder, url=demo.url, count=10_000, too_long=limits.STATE_CHARS + 1
    )
    assert found["rows"] == 10_000
    assert len(found["decisions"]) == 9_999
    assert list(found["errors"]) == ["5000"]
    assert found["errors"]["5000"].startswith("invalid_request: state")


def test_columns_of_all_kinds_are_sent_or_are_error_values(folder: Path, demo: Server) -> None:
    found = on_spark("kinds", folder, url=demo.url)
    sent = {kind for kind, (good, _) in found.items() if good is None}
    assert sent == set(found) - {"binary", "date"}
    assert all(bad.startswith("invalid_row: state: column") for _, bad in found.values())


def test_the_schema_is_the_same_for_good_and_bad_rows_and_for_none(
    folder: Path, demo: Server
) -> None:
    found = on_spark("schemas", folder, url=demo.url)
    assert (found["same"], found["nothing"]) == (True, [])
    assert found["columns"][:3] == ["id", "text", "big"]
    assert set(found["nulls"]) == {3}
    assert [error is None for error in found["errors"]] == [False] * 3 + [True] * 3
    assert found["big"] == [None, 2**60 + 1] * 3
    assert sum(found["choice"]["probabilities"].values()) == pytest.approx(1)
    assert found["refused"] == 'no column "nowhere"; there are "id", "text", "big"'


def test_a_forecast_is_what_the_command_line_says_of_the_same_rows(
    folder: Path, demo: Server
) -> None:
    count = 2_000
    one_part, many = on_spark("forecasts", folder, url=demo.url, count=count)["said"]
    assert one_part == many
    assert (many["rows"], many["sampled"], many["calls"]) == (count - 1, 100, 2 * (count - 1))
    said = forecast_of_map(folder, demo.url, count, missing=7)
    assert f"about {many['state_chars']} characters each, by 100 of them" in said
    assert stored(folder / "demo.db") == {}


def test_labels_come_in_the_shape_of_ai_classify(folder: Path, demo: Server) -> None:
    found = on_spark("classified", folder, url=demo.url)
    assert found["columns"] == ["response", "confidence", "error_message"]
    crash, again, refund, null, other = found["rows"]
    assert crash == again
    assert (crash["response"], refund["response"]) == ("tech", "billing")
    assert (null["response"], other["response"]) == (None, None)
    assert null["error_message"].endswith("is null")
    assert other["error_message"] is None
    # Equal texts are one decision.
    assert len(stored(folder / "demo.db")) == 3


def test_limits_are_waited_for_and_the_key_is_in_no_plan_and_in_no_log(folder: Path) -> None:
    db = folder / "svc.db"
    _, key = make_key(db, "bulk", "--rpm", "300")
    handler = lambda body, n, headers: Reply(reply_to(PREFERS_CATS, body))  # noqa: E731
    with ScriptedProvider(handler) as provider:
        settings = {"SVC_MODEL": "@own/m", "SVC_PROVIDER_OWN_URL": provider.url}
        with Server(db, **settings) as server:
            program = started("run", folder, url=server.url, api_key=key, count=150)
            found = program.found()
            refused = refusals(server.url, key)
    assert (found["rows"], found["errors"]) == (150, {})
    assert refused > 0
    assert "MapInPandas decided" in found["plans"]
    assert "svc_classify" in found["plans"]
    assert (found["shown"], key in program.words) == (False, False)
    logs = [path for path in (folder / "spark").rglob("*") if path.is_file()]
    assert [path for path in logs if key.encode() in path.read_bytes()] == []


def test_the_example_on_the_page_runs(folder: Path, demo: Server) -> None:
    found = on_spark("page", folder, code=example("svc.bulk.spark", demo.url))
    assert (found["rows"], found["errors"]) == (50, {})
