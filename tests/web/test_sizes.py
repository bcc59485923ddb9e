"""A project that has stored all it may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from svc.store import Database, ProjectSizes
from tests.scripted import Behaviour, Json
from tests.web.conftest import Start
from tests.web.models import decision, replying


def test_a_full_project_is_refused_before_any_model_is_asked(start: Start, tmp_path: Path) -> None:
    asked: list[int] = []
    model = replying()

    def counting(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        asked.append(n)
        return model(body, n, headers)

    opened = Database.open(tmp_path / "svc.db")
    ProjectSizes(opened).set("shop", 1)
    opened.close()
    client = start(counting).test_client()
    refused = client.post("/v1/decide", json=decision(project="shop"))
    assert refused.status_code == 422
    error = refused.get_json()["error"]
    assert error["type"] == "invalid_request" and "as many bytes as it may" in error["message"]
    assert asked == []
    assert client.post("/v1/decide", json=decision()).status_code == 200
