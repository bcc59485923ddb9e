"""A column of a decision that two places know is stored, answered and described."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

COLUMN = """    cached: bool = column(FLAG, "Whether every call was served from the cache.")
    shard: str = column(TEXT, "Where it was made.", default="north")
"""
LAST = "added += [_PACKED_READINGS, _ASKED_IN_INDEX, _GIVEN_BACK_IN_INDEX, _ELSEWHERE_IN_INDEX]\n"
MIGRATION = LAST.replace(
    "]", ", \"ALTER TABLE decisions ADD COLUMN shard TEXT NOT NULL DEFAULT 'south';\"]"
)
PROGRAM = """
import json
from svc.app import create_app
from svc.bootstrap import build
from svc.demo import DemoServer
from svc.settings import load

with DemoServer() as demo:
    services = build(load({
        "SVC_DB": "svc.db", "SVC_MODEL": "@demo/lexical", "SVC_PROVIDER_DEMO_URL": demo.url,
    }))
    client = create_app(services).test_client()
    question = {"type": "noul", "instructions": "Is it late?"}
    decided = client.post("/v1/decide", json={"state": "Late.", "questions": {"q": question}})
    paths = ("/v1/audit", "/openapi.json")
    print(json.dumps([decided.json, *(client.get(path).json for path in paths)]))
    services.close()
"""


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A decision, a page of the audit log and the document of a server with one more column."""
    folder = tmp_path_factory.mktemp("column")
    for name in ("svc", "static", "templates"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    last_line = COLUMN.splitlines(keepends=True)[0]
    edit(folder / "svc" / "records.py", last_line, COLUMN)
    edit(folder / "svc" / "store" / "migrations.py", LAST, MIGRATION)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_it_is_stored_and_in_the_audit_log(served: Any) -> None:
    _, page, _ = served
    assert [entry["shard"] for entry in page["entries"]] == ["north"]


def test_it_is_described_with_its_meaning(served: Any) -> None:
    _, _, document = served
    entry = document["components"]["schemas"]["AuditEntry"]
    assert entry["properties"]["shard"] == {"type": "string", "description": "Where it was made."}
    assert "shard" in entry["required"]


def test_the_callers_answer_stays_as_it_was(served: Any) -> None:
    decided, _, _ = served
    assert "answers" in decided and "shard" not in decided
