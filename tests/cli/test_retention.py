"""`svc retention`: days are set, shown, and taken away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main


def svc(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["retention", *arguments, "--db", str(db)])


def test_days_are_set_shown_and_taken_away(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    said = svc(db, "set", "--project", "shop", "--days", "90")
    assert said.stdout == "decisions of project 'shop' are deleted after 90 days\n"
    svc(db, "set", "--project", "shop", "--days", "1")
    assert svc(db, "list").stdout.splitlines()[-1].split() == ["shop", "1"]
    assert json.loads(svc(db, "list", "--json").stdout) == [{"project": "shop", "days": 1}]
    said = svc(db, "remove", "--project", "shop")
    assert said.stdout == "decisions of project 'shop' are kept for ever\n"
    assert "shop" not in svc(db, "list").stdout


@pytest.mark.parametrize("days", ["0", "-1", "36501"])
def test_days_out_of_range_are_refused(tmp_path: Path, days: str) -> None:
    said = svc(tmp_path / "svc.db", "set", "--project", "shop", "--days", days)
    assert said.exit_code == 1
    assert "--days" in said.stderr and "allowed" in said.stderr


def test_what_is_not_there_cannot_be_taken_away(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    assert svc(db, "remove", "--project", "shop").exit_code == 1
    svc(db, "set", "--project", "shop", "--days", "3")
    said = svc(db, "remove", "--project", "other")
    assert said.exit_code == 1
    assert "svc retention list" in said.stderr
