"""`svc budget`: limits in dollars are set, shown, and taken away."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.store import NANO, Account, ApiKeys, Budgets, Claim, Database, Per, Scope


def svc(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["budget", *arguments, "--db", str(db)])


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


def test_a_budget_is_set_shown_and_taken_away(db: Path) -> None:
    said = svc(db, "set", "--project", "shop", "--usd", "50", "--per", "day")
    assert said.stdout == "calls of project 'shop' beyond $50.0000 a day are refused\n"
    row = svc(db, "list").stdout.splitlines()[-1]
    assert row.split() == [
        *("project", "'shop'", "day", "$50.0000", "$0.0000", "$0.0000", "0.0%", "refuses", "80%")
    ]
    said = svc(db, "remove", "--project", "shop", "--per", "day")
    assert said.stdout == "project 'shop' has no budget a day any more\n"
    assert "shop" not in svc(db, "list").stdout


def test_what_is_spent_is_shown(db: Path) -> None:
    svc(db, "set", "--project", "shop", "--usd", "2", "--per", "month", "--warn-only")
    database = Database.open(db)
    budgets = Budgets(database)
    (state,) = budgets.states()
    period = Per.MONTH.period(time.time())
    account = Account(Scope.PROJECT, "shop", Per.MONTH, period)
    budgets.claim([Claim(account, NANO // 2, 0, NANO, NANO)])
    database.close()
    assert state.spent == 0
    (shown,) = json.loads(svc(db, "list", "--json").stdout)
    assert shown == {
        "scope": "project",
        "subject": "shop",
        "per": "month",
        "limit_usd": 2,
        "spent_usd": 0.5,
        "reserved_usd": 1,
        "hard": False,
        "warn_at": 0.8,
    }
    assert "75.0%" in svc(db, "list").stdout and "warns only" in svc(db, "list").stdout


def test_a_key_has_a_budget_by_its_id(db: Path) -> None:
    database = Database.open(db)
    key = ApiKeys(database).create("shop", 60)
    database.close()
    assert key is not None
    said = svc(db, "set", "--key", key.id, "--usd", "1", "--per", "month", "--warn-at", "95")
    assert said.stdout == f"calls of key '{key.id}' beyond $1.0000 a month are refused\n"
    assert svc(db, "list").stdout.splitlines()[-1].split()[-1] == "95%"
    unknown = svc(db, "set", "--key", "key_0", "--usd", "1", "--per", "day")
    assert (unknown.exit_code, "svc keys list" in unknown.stderr) == (1, True)


def test_projects_have_one_name_each(db: Path) -> None:
    svc(db, "set", "--project", "cafe\u0301", "--usd", "1", "--per", "day")
    assert "'caf\u00e9'" in svc(db, "list").stdout


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "2e9"])
def test_an_amount_out_of_range_is_refused(db: Path, amount: str) -> None:
    said = svc(db, "set", "--project", "shop", "--usd", amount, "--per", "day")
    assert said.exit_code == 1
    assert "--usd" in said.stderr and "allowed" in said.stderr


@pytest.mark.parametrize("whose", [[], ["--project", "shop", "--key", "key_1"]])
def test_a_budget_is_of_a_project_or_of_a_key(db: Path, whose: list[str]) -> None:
    for given in (["set", "--usd", "1"], ["remove"]):
        Database.open(db).close()
        said = svc(db, *given, *whose, "--per", "day")
        assert (said.exit_code, "--project and --key" in said.stderr) == (2, True)


def test_a_budget_that_there_is_not_cannot_be_removed(db: Path) -> None:
    Database.open(db).close()
    said = svc(db, "remove", "--project", "shop", "--per", "day")
    assert (said.exit_code, "svc budget list" in said.stderr) == (1, True)
