"""`svc map` within the budgets of a database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from svc.store import NANO, Budget, Budgets, BudgetState, Database, Per, Scope
from tests.cli.processes import lines, svc
from tests.cli.test_map import Files
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import ANIMAL, PREFERS_CATS, reply_to

COST = 0.01


def charging(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    whole = reply_to(PREFERS_CATS, body)
    whole["usage"]["cost"] = COST
    return Reply(whole)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write([f"Cat {number}." for number in range(40)], {"animal": ANIMAL})
    return made


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "svc.db"
    bound(path, 0.1)
    return path


def bound(db: Path, dollars: float) -> None:
    database = Database.open(db)
    budget = Budget(Scope.PROJECT, "shop", Per.DAY, round(dollars * NANO))
    Budgets(database).set(budget)
    database.close()


def state(db: Path) -> BudgetState:
    database = Database.open(db)
    (found,) = Budgets(database).states()
    database.close()
    return found


@pytest.fixture
def run(files: Files, db: Path) -> Iterator[Callable[..., Any]]:
    with ScriptedProvider(charging) as provider:

        def run(**settings: str) -> Any:
            given = {
                "SVC_PROVIDER_URL": provider.url,
                "SVC_RPM": "100000",
                "SVC_PROVIDER_OPENROUTER_PRICE": "0.01,1280",
                **settings,
            }
            options = ["--model", "vendor/m", "--no-debias", "--budget-db", str(db)]
            return files.map(*options, "--budget-project", "shop", **given)

        yield run


def test_a_run_stops_at_the_limit_and_goes_on_once_there_is_room(
    run: Callable[..., Any], files: Files, db: Path
) -> None:
    ended = run()
    assert ended.returncode == 1
    assert 'the budget of project "shop", $0.1 a day, is spent; it renews at' in ended.stderr
    assert all("answers" in line for line in lines(files.output))
    spent = state(db)
    # Lines behind the one at which the run ended were paid too.
    assert len(lines(files.output)) * COST <= spent.spent / NANO <= 0.1
    assert (spent.spent / NANO >= 0.08, spent.reserved) == (True, 0)
    bound(db, 10)
    assert run().returncode == 0
    assert len(lines(files.output)) == 40


def test_a_run_with_a_model_of_unknown_price_does_not_begin(
    run: Callable[..., Any], files: Files
) -> None:
    ended = run(SVC_PROVIDER_OPENROUTER_PRICE="")
    assert ended.returncode == 1
    assert "SVC_PROVIDER_OPENROUTER_PRICE" in ended.stderr
    assert not files.output.exists()


def test_two_runs_share_the_budget(tmp_path: Path, db: Path) -> None:
    spent: list[int] = []
    with ScriptedProvider(charging) as provider:

        def run(name: str) -> None:
            files = Files(tmp_path / name)
            files.folder.mkdir()
            files.write([f"{name} {number}." for number in range(40)], {"animal": ANIMAL})
            options = ("--model", "vendor/m", "--no-debias", "--budget-db", str(db))
            given = {
                "SVC_PROVIDER_URL": provider.url,
                "SVC_RPM": "100000",
                "SVC_PROVIDER_OPENROUTER_PRICE": "0.01,1280",
            }
            spent.append(files.map(*options, "--budget-project", "shop", **given).returncode)

        runs = [threading.Thread(target=run, args=(name,)) for name in ("cats", "dogs")]
        for one in runs:
            one.start()
        for one in runs:
            one.join()
        assert len(provider.bodies) <= 10
    assert spent == [1, 1]
    # A call that is cut off before it is sent counts with what it may cost at most.
    assert len(provider.bodies) * COST * NANO <= state(db).spent <= 10 * COST * NANO


@pytest.mark.parametrize(
    "options",
    [
        ["--budget-project", "shop"],
        ["--budget-db", "svc.db", "--url", "http://127.0.0.1:1"],
        ["--budget-db", "svc.db", "--provider-batch"],
    ],
)
def test_options_that_exclude_each_other_are_refused(files: Files, options: list[str]) -> None:
    ended = svc(*files.arguments(*options))
    assert ended.returncode == 2 and "--budget-" in ended.stderr


def test_a_database_that_there_is_not_is_not_made(files: Files, tmp_path: Path) -> None:
    ended = files.map("--demo", "--budget-db", str(tmp_path / "none.db"))
    assert ended.returncode == 1 and "there is no such file" in ended.stderr
    assert not (tmp_path / "none.db").exists()
