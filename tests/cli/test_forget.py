"""`svc forget`: what it takes, what it counts, and what it refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.store import Database, Job, Jobs, new_id
from svc.store.decisions import Decisions
from tests.store.records import record

STATE = '{"text":"Late.","n":1.1}'


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "svc.db"
    database = Database.open(path)
    decisions = Decisions(database)
    state = hashlib.sha256(database.salt + STATE.encode()).digest()
    decisions.add(record(project="shop", ref="ann"))
    decisions.add(record(project="shop", ref="bob", state_hash=state))
    decisions.add(record(project="other", ref="ann", state_hash=state))
    database.close()
    return path


def svc(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["forget", *arguments, "--db", str(db)], env={"SVC_MASTER_KEY": ""}
    )


def refs(db: Path) -> list[str | None]:
    database = Database.open(db)
    try:
        pages = [Decisions(database).page(project, 10) for project in ("shop", "other")]
    finally:
        database.close()
    return [entry.facts.ref for page in pages for entry in page.entries]


def test_a_dry_run_only_counts(db: Path) -> None:
    said = svc(db, "--ref", "ann", "--project", "shop", "--dry-run")
    assert said.stdout == "stored\n  decisions: 1\n"
    assert refs(db) == ["bob", "ann", "ann"]


def test_a_ref_of_one_project_is_erased_and_what_remains_is_named(db: Path) -> None:
    said = svc(db, "--ref", "ann", "--project", "shop")
    assert said.exit_code == 0, said.stderr
    assert said.stdout.startswith("erased\n  decisions: 1\n")
    assert "backups" in said.stdout and "logs" in said.stdout
    assert refs(db) == ["bob", "ann"]
    assert svc(db, "--ref", "ann", "--project", "shop").stdout.startswith(
        "erased\n  decisions: 0\n"
    )


@pytest.mark.parametrize(
    "content", [STATE, f"{STATE}\r\n", '{\n  "text": "Late.",\n  "n": 1.10\n}\n']
)
def test_a_state_is_its_text_or_its_json(db: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "state"
    path.write_text(content, newline="")
    said = svc(db, "--state-file", str(path), "--project", "shop")
    assert "decisions: 1\n" in said.stdout
    assert refs(db) == ["ann", "ann"]


def test_one_subject_is_named(db: Path) -> None:
    for named in ((), ("--ref", "ann", "--state-file", "state")):
        said = svc(db, *named, "--project", "shop")
        assert said.exit_code == 2
        assert "--ref or --state-file" in said.stderr
    said = svc(db, "--ref", "", "--project", "shop")
    assert said.exit_code == 1
    assert "--ref" in said.stderr
    assert svc(db, "--ref", "ann").exit_code == 2


def test_what_cannot_be_read_is_refused(db: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"\xff")
    said = svc(db, "--state-file", str(tmp_path / "state"), "--project", "shop")
    assert "UTF-8" in said.stderr
    said = svc(tmp_path / "none.db", "--ref", "ann", "--project", "shop")
    assert "there is no such file" in said.stderr
    assert not (tmp_path / "none.db").exists()


def test_rows_that_wait_cannot_be_looked_into_without_the_master_key(db: Path) -> None:
    database = Database.open(db)
    given = {"project": "shop", "api_key": None, "created_at": 1, "expires_at": 2, "rows": 1}
    Jobs(database).add(Job(id=new_id(), **given))
    database.close()
    said = svc(db, "--ref", "ann", "--project", "shop")
    assert said.exit_code == 1
    assert "SVC_MASTER_KEY" in said.stderr
    assert refs(db) == ["bob", "ann", "ann"]
    assert svc(db, "--ref", "ann", "--project", "other").exit_code == 0
